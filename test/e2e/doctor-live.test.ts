import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { checkLive } from '../../src/platforms/live-check.ts';
import type { FakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { sampleUsers, startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { CliHome } from '../support/run-cli.ts';

interface Live {
  ok: boolean;
  checks: Array<{ check: string; result: string; details: string[] }>;
}

const general = { id: 77_000_000, name: 'General', rank: 90 };

/** Runs `doctor --live` after changing the fake. Resolves with the checks that are not ok. */
async function differing(change: (roblox: FakeOpenCloud) => void, ...args: string[]) {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  change(roblox);
  const result = await home.here(['doctor', '--live', '--json', ...args]);
  const { checks } = result.json<Live>();
  const found = checks
    .filter(({ result }) => result !== 'ok')
    .map(({ check, result, details }) => ({ check, result, details }));
  return { code: result.code, found, roblox, text: result.stdout };
}

test('an ordinary group has no differences, and is checked with at most 16 reads', async () => {
  const { code, found, roblox } = await differing(() => undefined);
  expect({ code, found }).toEqual({ code: 0, found: [] });
  expect(roblox.journal.entries.length).toBeLessThanOrEqual(16);
  expect(roblox.journal.writes()).toEqual([]);
});

test.each<[what: string, change: (roblox: FakeOpenCloud) => unknown, check: string, details: string]>([
  ['a migrated group', (roblox) => Object.assign(roblox, { migration: 'Migrated' }), 'migration', 'NotMigrated'],
  [
    'memberships without roles',
    (roblox) => Object.assign(roblox, { rolesField: 'absent' }),
    'acting account',
    'roles: missing',
  ],
  [
    'an unknown field',
    (roblox) => Object.assign(roblox, { addedFields: { badge: 'gold' } }),
    'acting account',
    'ListGroupMembershipsResponse.groupMemberships[].badge: unknown field',
  ],
  [
    'a field of a different type',
    (roblox) => Object.assign(roblox, { addedFields: { description: 4711 } }),
    'role',
    'GroupRole.description: ',
  ],
  [
    'a response without rate headers',
    ({ budgets }) => Object.assign(budgets, { sendsHeaders: false }),
    'rate limits',
    'missing in',
  ],
  [
    'a key without the scope',
    ({ credential }) => Object.assign(credential, { scopes: [] }),
    'key',
    'none is named group',
  ],
  [
    'a key whose account is not reported',
    ({ credential }) => Object.assign(credential, { userId: undefined }),
    'acting account',
    'ApiKey.authorizedUserId: missing',
  ],
  [
    'an account that has left',
    ({ group }) => group.removeMember(sampleUsers.actor),
    'acting account',
    'is not a member',
  ],
  ['roles that share a rank', ({ group }) => group.roles.push({ ...general, rank: 20 }), 'roles', 'share a rank'],
  [
    'a private role',
    ({ group }) => group.roles.push({ ...general, isPrivate: true }),
    'public list',
    'some are private',
  ],
  [
    'a different rate limit',
    ({ budgets }) => Object.assign(budgets, { limits: { ...budgets.limits, memberships: 60 } }),
    'rate limits',
    'not the documented limit in 3 responses',
  ],
])('%s is reported as a difference, and FAILs no check', async (_what, change, check, details) => {
  const { code, found, text } = await differing((roblox) => void change(roblox));
  expect(code).toBe(0);
  expect(text).not.toMatch(/gold|4711/); // values from responses are never printed
  expect(found).toContainEqual({
    ...{ check, result: 'differs' },
    details: expect.arrayContaining([expect.stringContaining(details)]),
  });
});

test('a response that rankd cannot use FAILs with its path and type, and plain doctor also reports it, without retries', async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  const role = { path: 'groups/700/roles/1', id: '1', displayName: 'Guest', rank: '0' };
  roblox.faults.add({ operation: 'roles', kind: 'body', times: 100, body: JSON.stringify({ groupRoles: [role] }) });
  const flaw = 'ListGroupRolesResponse.groupRoles[].rank: string instead of integer';
  const live = (await home.here(['doctor', '--live', '--json'])).json<Live>();
  expect(live.checks).toContainEqual({ check: 'roles', result: 'FAIL', details: [flaw] });
  const begun = performance.now();
  const { code, stdout } = await home.here(['doctor', '--json']);
  expect(performance.now() - begun).toBeLessThan(10_000); // the deadline is 20 s
  expect(code).toBe(5);
  expect(JSON.parse(stdout).findings).toContainEqual({
    ...{ check: 'group', grade: 'FAIL', text: expect.stringContaining(flaw) },
    fix: expect.stringContaining('doctor --live'),
  });
});

test('a group without a name is reported as a difference', async () => {
  const body = JSON.stringify({ path: 'groups/700', id: '700', memberCount: 3 });
  const { found } = await differing(({ faults }) => faults.add({ operation: 'group', kind: 'body', body }));
  expect(found).toContainEqual({ check: 'group', result: 'differs', details: ['Group.displayName: missing'] });
});

test.each<Partial<FakeOpenCloud>>([{ rolesField: 'withBase' }, { endsWithEmptyToken: false }])(
  '%o is not a difference, because it is known behavior',
  async (behavior) => {
    expect(await differing((roblox) => Object.assign(roblox, behavior))).toMatchObject({ code: 0, found: [] });
  },
);

test('a list whose second page repeats the first is reported only as that', async () => {
  const { found, roblox } = await differing((roblox) => Object.assign(roblox, { pagesRepeat: true }));
  expect(roblox.journal.entries.length).toBeLessThanOrEqual(16);
  expect(found).toEqual([
    { check: 'roles', result: 'differs', details: ['nextPageToken: the second page repeats the first'] },
  ]);
});

test.each<[what: string, change: (roblox: FakeOpenCloud) => unknown, check: string, details: string]>([
  [
    'a disabled key',
    ({ credential }) => Object.assign(credential, { enabled: false }),
    'key',
    'the key is disabled or expired',
  ],
  [
    'a limit that no header reports',
    ({ budgets }) => Object.assign(budgets, { hidden: { burst: 1, perSecond: 0 } }),
    'no member',
    'answered with 429',
  ],
])('%s FAILs', async (_what, change, check, details) => {
  const { code, found } = await differing((roblox) => void change(roblox));
  expect(code).toBe(5);
  expect(found).toContainEqual({ check, result: 'FAIL', details: [details] });
});

test('a locked group is reported as such, and forbidden reads FAIL', async () => {
  const { code, found } = await differing(({ group }) => Object.assign(group, { locked: true }));
  expect(code).toBe(5);
  expect(found).toContainEqual({
    check: 'group',
    result: 'differs',
    details: [expect.stringContaining('Group.locked')],
  });
});

test('a check without a response FAILs, and the others continue', async () => {
  const { code, found } = await differing((roblox) => Object.assign(roblox, { hasPublicRoles: false }));
  expect(code).toBe(5);
  expect(found).toMatchObject([
    { check: 'public list', result: 'FAIL' },
    { check: 'base members', result: 'differs' },
  ]);
});

test('if the second page of roles cannot be read, the pages are still checked', async () => {
  const { found, roblox } = await differing(({ group, faults }) => {
    const more = Array.from({ length: 25 }, (_, index) => ({ id: 9_001 + index, rank: 1, name: `Role ${index}` }));
    group.roles.push(...more);
    faults.add({ operation: 'roles', kind: 'status 404', skip: 1 });
  });
  expect(found).toContainEqual({ check: 'roles', result: 'FAIL', details: [expect.stringContaining('404')] });
  expect(roblox.journal.requests('roles').length).toBeGreaterThan(3);
});

test('a name lookup that requires a login FAILs with --live, and doctor reports it as permanent', async () => {
  const { found } = await differing(({ faults }) => faults.add({ operation: 'userNames', kind: 'status 401' }));
  expect(found).toEqual([{ check: 'names', result: 'FAIL', details: [expect.stringContaining('no longer looks up')] }]);
  await using system = await openCloudHome();
  const doctor = async () => (await system.home.here(['doctor', '--json'])).json<{ findings: unknown[] }>().findings;
  const works = { check: 'names', grade: 'ok', text: expect.stringContaining('if that ends'), fix: null };
  expect(await doctor()).toContainEqual(works);
  system.roblox.faults.add({ operation: 'userNames', kind: 'status 401' });
  const findings = await doctor();
  expect(findings).toContainEqual({
    ...{ check: 'names', grade: 'warn', fix: expect.stringContaining('user ids') },
    text: expect.stringMatching(/no longer looks up user names.*finds by name only users in its history/),
  });
});

/** Runs the checks of `doctor --live --member` without their pauses. Resolves with the checks that are not ok. */
async function tryWrites(memberId: number, change: (roblox: FakeOpenCloud) => unknown = () => undefined) {
  const roblox = await startFakeOpenCloud();
  onTestFinished(() => roblox.close());
  change(roblox);
  const clock = { ...systemClock, now: systemClock.now, sleep: async () => {} };
  const findings = await checkLive({ ...roblox, clock, memberId, signal: AbortSignal.timeout(10_000) });
  return { roblox, found: findings.filter(({ result }) => result !== 'ok') };
}

test('with --member, doctor tries writes that change no member', async () => {
  const { roblox, found } = await tryWrites(sampleUsers.trainee);
  expect(found).toEqual([]);
  expect(roblox.journal.writes()).toHaveLength(2);
  expect(roblox.journal.entries.some(({ applied }) => applied)).toBe(false);
});

test.each<[what: string, mood: Partial<FakeOpenCloud>, details: string]>([
  ['an assign that replaces roles', { assignReplaces: true }, 'a later read shows different roles'],
  ['empty write responses', { writeAnswer: 'empty object' }, 'assign: GroupMembership.user: missing'],
  ['write responses without a body', { writeAnswer: 'no content' }, 'assign: status 204 instead of 200'],
])('with --member, %s is reported', async (_what, behavior, details) => {
  const { found } = await tryWrites(sampleUsers.traineeAndCaptain, (roblox) => Object.assign(roblox, behavior));
  expect(found).toEqual([{ check: 'writes', result: 'differs', details: expect.arrayContaining([details]) }]);
});

test('with --member, a key that may only read FAILs', async () => {
  const member = String(sampleUsers.trainee);
  const readOnly = ({ credential }: FakeOpenCloud) => {
    credential.scopes = [{ name: 'group', operations: ['read'] }];
  };
  expect(await differing(readOnly, '--member', member)).toMatchObject({
    code: 5,
    found: [{ check: 'writes', details: ['assign was refused with 403'] }],
  });
});

test('--report writes the findings without any id or secret', async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  expect((await home.here(['doctor', '--live', '--report', 'report.txt'])).code).toBe(0);
  const report = readFileSync(home.path('report.txt'), 'utf8');
  expect(report).toContain('ok       acting account');
  expect(report).not.toMatch(/\d{4,}/);
  expect(report).not.toContain(roblox.apiKey);
  expect((await home.here(['doctor', '--live', '--report', 'report.txt'])).code).toBe(4);
});

test('an unreachable Roblox is reported with the cause and its hint', async () => {
  await using system = await openCloudHome();
  const env = { RANKD_PLATFORM_BASE_URL: 'https://rankd.invalid' };
  const { stdout } = await system.home.here(['doctor', '--live'], { env });
  expect(stdout).toMatch(
    /^FAIL {5}group\n +Roblox can't be reached: its host name does not exist.*\n +try: .*rankd\.invalid/m,
  );
});

test('on a simulated group, --live is a usage error', async () => {
  using home = new CliHome();
  const { code, stderr } = await home.here(['doctor', '--live']);
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('simulated') });
});
