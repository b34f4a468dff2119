import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { policyRules } from '../../src/core/policy.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { CliHome } from '../support/run-cli.ts';

interface DryRun {
  allowed: boolean;
  checks: Array<{ name: string; state: string; code?: string; detail: string; try?: string }>;
}

const trainee = '1001';
const officer = '1002';
const captain = '1003';
const lowest = '1004';
const highest = '1010';

function withPolicy(policy: string): CliHome {
  const home = new CliHome();
  writeFileSync(home.path('rankd.yaml'), `platform: { kind: simulated }\npolicy: { ${policy} }\n`);
  return home;
}

async function dryRun(home: CliHome, ...args: string[]): Promise<DryRun> {
  return (await home.here(['rank', 'test', ...args, '--json'])).json<DryRun>();
}

async function history(home: CliHome): Promise<Array<[number, number, string]>> {
  const { changes } = await home.json<{ changes: Array<{ rankerId: number; newRankId: number; state: string }> }>(
    'history',
    'list',
  );
  return changes.map(({ rankerId, newRankId, state }) => [rankerId, newRankId, state]);
}

const failed = ({ checks }: DryRun) => checks.filter(({ state }) => state === 'FAIL').map(({ name }) => name);

test.concurrent('rank test lists every check in order, and names the deciding setting if one fails', async () => {
  using home = withPolicy('min_rank: 10, steps: adjacent, ranker_check: verify');
  await home.here(['key', 'create', 'game', '--direction', 'demote', '--self-rank', 'deny']);
  await home.here(['whitelist', 'add', '1', '--key', 'game']);
  const run = await dryRun(home, trainee, '50', '--key', 'game', '--place', '1', '--ranker', trainee);
  expect(run.allowed).toBe(false);
  expect(run.checks.map(({ name }) => name)).toEqual([
    ...['workspace', 'key', 'scope', 'whitelist', 'breaker', 'suspension', 'platform', 'rank', 'member'],
    ...policyRules.map(({ name }) => name),
    ...['acting account', 'ranker rank'],
  ]);
  expect(failed(run)).toEqual(['direction', 'steps', 'self-rank', 'ranker', 'ranker rank']);
  const { code, stdout } = await home.here(['rank', 'test', trainee, '50', '--key', 'game', '--ranker', trainee]);
  expect(code).toBe(5);
  expect(stdout).toMatch(/This key may only demote members/);
  expect(stdout).toMatch(/would skip Officer \(rank 20\): policy\.steps is adjacent/);
  expect(stdout).toMatch(/try: rankd key set KEY --direction both/);
});

test.concurrent('rank test stops at the failed check; -v and --json also list the checks after it', async () => {
  using home = new CliHome();
  const line = ['rank', 'test', trainee, '99'];
  const { stdout } = await home.here(line);
  expect(stdout).toMatch(/^FAIL +rank .*\nerror: /m);
  expect(stdout).not.toContain('not reached');
  expect((await home.here([...line, '-v'])).stdout).toMatch(/^skip +cooldown +not reached$/m);
});

test.concurrent('--if-rank and --at-least compare the current rank, for a file too', async () => {
  using home = new CliHome();
  const change = (...line: string[]) => home.here(['rank', ...line]);
  expect(await change('promote', trainee, '--if-rank', 'Officer')).toMatchObject({
    code: 5,
    stderr: expect.stringContaining(
      'is Trainee (rank 10); the request expects Officer. Nothing was changed.\ntry: rankd rank show USER\n',
    ),
  });
  expect((await change('set', trainee, '50', '--if-rank', '10')).code).toBe(0);
  expect((await change('set', trainee, '20', '--at-least')).stdout).toMatch(/is already Captain/);
  writeFileSync(home.path('users'), `${trainee}\n${officer}\n`);
  const listed = await change('set', '20', '--file', home.path('users'), '--if-rank', '50', '-y', '--json');
  const { list } = listed.json<{ list: { members: Array<{ rankeeId: number }> } }>();
  expect(list.members.toSorted((one, other) => one.rankeeId - other.rankeeId)).toMatchObject([
    { rankeeId: Number(trainee), state: 'changed' },
    { rankeeId: Number(officer), state: 'refused', code: 'rank_differs' },
  ]);
  expect((await change('set', trainee, '20', '--at-least', '--for', '1d')).code).toBe(2);
});

test.concurrent('rank test shows the operator why a key is refused, which games never see', async () => {
  using home = new CliHome();
  await home.here(['key', 'create', 'game']);
  await home.here(['workspace', 'suspend', '--yes']);
  const { checks } = await dryRun(home, trainee, '20', '--key', 'game');
  expect(checks[0]).toMatchObject({
    name: 'workspace',
    state: 'FAIL',
    code: 'invalid_key',
    detail: expect.stringMatching(/^The workspace is suspended \(key_\w+\)\.$/),
    try: 'rankd workspace resume',
  });
});

test.concurrent('rank test reads the ranker, and shows the result', async () => {
  using home = withPolicy('ranker_check: verify');
  const allowed = await dryRun(home, trainee, '20', '--ranker', captain);
  expect(allowed.allowed).toBe(true);
  expect(allowed.checks.at(-1)).toMatchObject({
    name: 'ranker rank',
    state: 'ok',
    detail: '1003 holds Member (rank 1), Trainee (rank 10), Captain (rank 50)',
  });
  const refused = await dryRun(home, trainee, '20', '--ranker', officer);
  expect(failed(refused)).toEqual(['ranker rank']);
  expect(refused.checks.at(-1)).toMatchObject({ code: 'ranker_not_allowed' });
  const operators = await dryRun(home, trainee, '20');
  expect(operators.checks.at(-1)).toMatchObject({ state: 'ok', detail: 'not required by the policy' });
});

test.concurrent("the policy applies to the operator's changes, including the ranker check if a ranker is named", async () => {
  using home = withPolicy('max_rank: 20, ranker_check: verify');
  const above = await home.here(['rank', 'promote', officer]);
  expect([above.code, above.stderr]).toEqual([5, expect.stringContaining('the ceiling set by policy.max_rank')]);
  const low = await home.here(['rank', 'set', trainee, '20', '--ranker', officer]);
  expect([low.code, low.stderr]).toEqual([5, expect.stringContaining('policy.ranker_check is verify')]);
  expect((await home.here(['rank', 'promote', trainee, '--ranker', captain])).code).toBe(0);
  expect((await home.here(['rank', 'demote', trainee])).code).toBe(0);
  expect(await history(home)).toEqual([
    [0, 10, 'applied'],
    [1003, 20, 'applied'],
    [1002, 20, 'refused'],
    [0, 50, 'refused'],
  ]);
});

test.concurrent('a step beyond the highest or lowest rank is refused, and not recorded as a change', async () => {
  using home = new CliHome();
  await home.json('key', 'list');
  const refusals = [await home.here(['rank', 'promote', highest]), await home.here(['rank', 'demote', lowest])];
  expect(refusals.map(({ code }) => code)).toEqual([5, 5]);
  expect(refusals.map(({ stderr }) => stderr)).toEqual([
    expect.stringMatching(`^SIMULATED .*\nerror: Member ${highest} already has the highest rank that can be given.\n`),
    expect.stringMatching(`^SIMULATED .*\nerror: Member ${lowest} already has the lowest rank that can be given.\n`),
  ]);
  expect(await history(home)).toEqual([]);
});

test.concurrent('promote and demote skip locked roles', async () => {
  using home = withPolicy('locked_roles: [20, 1], steps: adjacent');
  for (const [step, rank] of [
    ['promote', 50],
    ['demote', 10],
  ] as const) {
    const { change } = await home.json<{ change: object }>('rank', step, trainee);
    expect(change).toMatchObject({ state: 'applied', newRankId: rank });
  }
  expect(await home.here(['rank', 'demote', trainee])).toMatchObject({
    code: 5,
    stderr: expect.stringContaining('already has the lowest rank that can be given'),
  });
});

test.concurrent('rank test distinguishes a platform that does not respond from one that does not report the acting account', async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  const platformCheck = async () => {
    const env = { RANKD_SERVER_DEADLINE: '3s' };
    const { code, ...result } = await home.here(['rank', 'test', trainee, '20', '--json'], { env });
    const [check] = result.json<DryRun>().checks.filter(({ name }) => name === 'platform');
    return { code, check };
  };
  roblox.faults.add({ operation: 'introspect', kind: 'status 500', times: 100 });
  expect(await platformCheck()).toMatchObject({
    code: 0,
    check: { state: 'ok', detail: 'responds, but does not report the acting account' },
  });
  await roblox.close();
  expect(await platformCheck()).toMatchObject({
    code: 69,
    check: { state: 'FAIL', code: 'platform_unavailable' },
  });
});

test.concurrent("Roblox's 429 is reported with the seconds to wait, as text and as JSON", async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  roblox.faults.add({ operation: 'memberships', kind: 'status 429', headers: { 'retry-after': '45' }, times: 9 });
  const line = ['rank', 'set', trainee, '20'];
  const { code, stderr } = await home.here(line);
  expect(code).toBe(75);
  expect(stderr).toMatch(
    /^error: Roblox's rate limit for reading members is used up; rankd can try again in 4[45] s\.\ntry: wait 4[45] s, then run the command again$/m,
  );
  const { retryAfter } = (await home.here([...line, '--json'])).json<{ retryAfter: number }>();
  expect(retryAfter).toBeGreaterThan(40);
});

test.concurrent('rank test exits with 5 for any refusal, even a temporary one, and after any other error like the change', async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  const configured = readFileSync(home.path('rankd.yaml'), 'utf8');
  const codes = async (config: string) => {
    writeFileSync(home.path('rankd.yaml'), config);
    const tried = await home.here(['rank', 'test', trainee, '20']);
    const changed = await home.here(['rank', 'set', trainee, '20']);
    return [tried.code, changed.code];
  };
  await home.json('rank', 'set', trainee, '50');
  expect(await codes(`${configured}policy: { cooldown: 1h }`)).toEqual([5, 75]);
  expect(await codes(`${configured}policy: { max_rank: 10 }`)).toEqual([5, 5]);
  expect(await codes(configured.replace('group: {', 'group: { ladder: [10, 77],'))).toEqual([78, 78]);
  roblox.credential.enabled = false;
  expect(await codes(configured)).toEqual([77, 77]);
});
