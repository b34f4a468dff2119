import { existsSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type FakeOpenCloud, sampleRoles, sampleUsers, startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { CliHome } from '../support/run-cli.ts';

interface Shown {
  v: number;
  group: { acting: unknown; givable: Array<{ rank: number; id: number }> | null };
}

interface World extends AsyncDisposable {
  home: CliHome;
  roblox: FakeOpenCloud;
}

async function setUp(): Promise<World> {
  const home = new CliHome();
  const roblox = await startFakeOpenCloud();
  const close = async () => {
    home[Symbol.dispose]();
    await roblox.close();
  };
  return { home, roblox, [Symbol.asyncDispose]: close };
}

function configure({ home, roblox }: World, ...more: string[]): void {
  writeFileSync(home.path('roblox.key'), roblox.apiKey, { mode: 0o600 });
  const { groupId, baseUrl, legacyBaseUrl } = roblox;
  const platform = `platform: { api_key_file: roblox.key, base_url: "${baseUrl}", legacy_base_url: "${legacyBaseUrl}" }`;
  writeFileSync(
    home.path('rankd.yaml'),
    [`group: { id: ${groupId}${more[0] ?? ''} }`, platform, ...more.slice(1)].join('\n'),
  );
}

test.concurrent('group show prints the group, its owner, the acting account and the roles that it can give', async () => {
  await using world = await setUp();
  const { home, roblox } = world;
  configure(world);
  expect(await home.json<Shown>('group', 'show')).toEqual({
    v: 1,
    group: {
      id: roblox.groupId,
      name: 'Sample Fellowship',
      memberCount: roblox.group.userIds.length,
      ownerId: sampleUsers.owner,
      acting: { userId: sampleUsers.actor, name: 'RankBot', rank: 200, isOwner: false },
      givable: [
        { rank: 1, id: sampleRoles.base, name: 'Member' },
        { rank: 1, id: sampleRoles.recruit, name: 'Recruit' },
        { rank: 10, id: sampleRoles.trainee, name: 'Trainee' },
        { rank: 20, id: sampleRoles.officer, name: 'Officer' },
        { rank: 50, id: sampleRoles.captain, name: 'Captain' },
      ],
    },
  });
  const { stdout } = await home.here(['group', 'show']);
  expect(stdout).toMatch(/user RankBot \(9001\), rank 200/);
  expect(stdout).toMatch(/1 \(Member\), 1 \(Recruit\), 10 \(Trainee\), 20 \(Officer\), 50 \(Captain\)/);
  expect(roblox.violations()).toEqual([]);
});

test.concurrent('an acting account that is not a member of the group is shown as such, and can give nothing', async () => {
  await using world = await setUp();
  const { home, roblox } = world;
  configure(world);
  roblox.group.removeMember(sampleUsers.actor);
  const { stdout, stderr } = await home.here(['group', 'show']);
  expect(stdout).toMatch(/^acting +user RankBot \(9001\), not a member of the group\ncan give +nothing$/m);
  expect(stderr).toMatch(/^try: have the acting account join/m);
});

test.concurrent('an acting account without permission to change ranks can give nothing', async () => {
  await using world = await setUp();
  const { home, roblox } = world;
  configure(world);
  for (const role of roblox.group.roles) role.changeRank = false;
  const { stdout, stderr } = await home.here(['group', 'show']);
  expect(stdout).toMatch(/^acting +user RankBot \(9001\), rank 200\ncan give +nothing$/m);
  expect(stderr).toMatch(/^try: give the role of the acting account the permission "Manage lower-ranked/m);
});

test.concurrent('roles that can be given are within the ladder and the policy', async () => {
  await using world = await setUp();
  const { home, roblox } = world;
  roblox.credential.userId = sampleUsers.owner; // the owner can change every role except its own
  configure(world, ', ladder: [10, 20, 200]', 'policy: { max_rank: 199, locked_roles: [10] }');
  const { group } = await home.json<Shown>('group', 'show');
  expect(group.givable?.map(({ rank }) => rank)).toEqual([1, 20]);
});

test.concurrent('an owner as the acting account can give every role except its own', async () => {
  await using world = await setUp();
  const { home, roblox } = world;
  roblox.credential.userId = sampleUsers.owner;
  configure(world);
  const { group } = await home.json<Shown>('group', 'show');
  expect(group.acting).toEqual({ userId: sampleUsers.owner, name: null, rank: 255, isOwner: true });
  expect(group.givable?.map(({ rank }) => rank)).toEqual([1, 1, 10, 20, 50, 200]);
});

test.concurrent.each([
  ['disabled', { enabled: false }],
  ['expired', { expired: true }],
])('a Roblox key that is %s causes exit code 77 and is never shown', async (_what, flaw) => {
  await using world = await setUp();
  const { home, roblox } = world;
  Object.assign(roblox.credential, flaw);
  configure(world);
  const result = await home.here(['group', 'show', '--json']);
  expect(result).toMatchObject({ code: 77, stdout: '' });
  expect(result.json()).toMatchObject({ v: 1, success: false, code: 'platform_credential' });
  expect(result.stderr).not.toContain(roblox.apiKey);
});

test.concurrent('group roles lists the roles by rank, with id, kind, position on the ladder and powers over others', async () => {
  await using world = await setUp();
  const { home } = world;
  configure(world, ', ladder: [10, 50]');
  const none = { privileged: false, powers: [] };
  const unreported = { privileged: null, powers: null };
  expect(await home.json('group', 'roles')).toEqual({
    v: 1,
    roles: [
      { rank: 0, id: sampleRoles.guest, name: 'Guest', kind: 'guest', onLadder: false, ...none },
      { rank: 1, id: sampleRoles.base, name: 'Member', kind: 'base', onLadder: true, ...unreported },
      { rank: 1, id: sampleRoles.recruit, name: 'Recruit', kind: 'custom', onLadder: false, ...unreported },
      { rank: 10, id: sampleRoles.trainee, name: 'Trainee', kind: 'custom', onLadder: true, ...unreported },
      { rank: 20, id: sampleRoles.officer, name: 'Officer', kind: 'custom', onLadder: false, ...unreported },
      { rank: 50, id: sampleRoles.captain, name: 'Captain', kind: 'custom', onLadder: true, ...unreported },
      {
        rank: 200,
        id: sampleRoles.admin,
        name: 'Admin',
        kind: 'custom',
        onLadder: false,
        privileged: true,
        powers: ['change ranks'],
      },
      { rank: 255, id: sampleRoles.owner, name: 'Owner', kind: 'owner', onLadder: false, ...unreported },
    ],
  });
});

test.concurrent('a role name cannot control the terminal', async () => {
  await using world = await setUp();
  const { home, roblox } = world;
  const trainee = roblox.group.role(sampleRoles.trainee);
  Object.assign(trainee ?? {}, { name: '\u001b[31mTrainee\nOwner' });
  configure(world);
  for (const command of ['roles', 'show']) {
    const { code, stdout } = await home.here(['group', command]);
    expect(code).toBe(0);
    expect(stdout).not.toContain('\u001b');
    expect(stdout).not.toMatch(/^Owner/m);
  }
});

test.concurrent('a ladder that does not fit the group is reported by reading commands, and prevents changes', async () => {
  await using world = await setUp();
  const { home } = world;
  await home.json('key', 'list');
  configure(world, ', ladder: [10, 77]');
  const trainee = String(sampleUsers.trainee);
  const warning = /^warning: group\.ladder does not fit the group: 77 [^\n]*\ntry: correct group\.ladder [^\n]+\n$/;
  const readingCommands = [
    [['group', 'roles'], /^20 +\d+ +custom +no +\? +Officer$/m],
    [['group', 'show'], /^can give +1 \(Member\), 10 \(Trainee\)$/m],
    [['rank', 'show', trainee], /^10 +Trainee/m],
  ] as const;
  for (const [command, shown] of readingCommands) {
    expect(await home.here([...command])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(shown),
      stderr: expect.stringMatching(warning),
    });
    expect(await home.here([...command, '--json'])).toMatchObject({ code: 0, stderr: '' });
  }
  expect(await home.here(['rank', 'set', trainee, '20'])).toMatchObject({ code: 78, stdout: '' });
});

test.concurrent('the base role is looked up once, for all later commands', async () => {
  await using world = await setUp();
  const { home, roblox } = world;
  configure(world);
  for (let times = 0; times < 2; times += 1) {
    const { stdout } = await home.here(['group', 'roles']);
    expect(stdout).toMatch(/^1 +12884901889 +base +- +- +Member\n1 +70000010 +custom +- +\? +Recruit$/m);
    expect(roblox.journal.requests('publicRoles')).toHaveLength(1);
  }
});

test.concurrent('config check compares ladder and policy with the group, and changes nothing', async () => {
  await using world = await setUp();
  const { home, roblox } = world;
  configure(world, ', ladder: [1, 10, 20]', 'policy: { locked_roles: [77] }');
  const check = async (...args: string[]) => {
    const { code, stderr, json } = await home.here(['config', 'check', '--json', ...args]);
    return { exit: code, ...json<{ warnings?: string[]; message?: string }>(), stderr };
  };
  const stray = 'policy.locked_roles does not fit the group: 77 is not a rank or role id in the group.';
  expect(await check()).toMatchObject({ exit: 78, message: stray });
  roblox.group.roles.push({ id: 50_051, name: 'Twin', rank: 10 });
  expect(await check()).toMatchObject({ exit: 78, message: expect.stringContaining('rank 10 is shared by role') });
  expect(await check('--offline')).toMatchObject({ exit: 0, warnings: [] });
  await roblox.close();
  const down = "ranks and roles were not checked against the group: Roblox can't be reached";
  expect(await check()).toMatchObject({ exit: 0, warnings: [expect.stringContaining(down)] });
  expect(existsSync(home.dataDir)).toBe(false);
});

test.concurrent('config check makes no call if the configuration names no role', async () => {
  await using world = await setUp();
  configure(world);
  expect((await world.home.here(['config', 'check'])).code).toBe(0);
  expect(world.roblox.journal.entries).toEqual([]);
});

test.concurrent('with an unavailable platform, group roles exits with 69', async () => {
  await using world = await setUp();
  const { home, roblox } = world;
  configure(world, '', 'server: { deadline: 1s }');
  await roblox.close();
  const down = await home.here(['group', 'roles', '--json']);
  expect(down).toMatchObject({ code: 69, stdout: '' });
  expect(down.json()).toMatchObject({ v: 1, success: false, code: 'platform_unavailable' });
});

test.concurrent('without a configuration, commands use the simulated group', async () => {
  await using world = await setUp();
  const { home } = world;
  expect(await home.json<Shown>('group', 'show')).toMatchObject({
    group: { id: 1, name: 'Simulated Group', ownerId: 9000 },
  });
});

interface Members {
  role: { id: number };
  members: Array<{ userId: number; name: string | null }>;
  next: string | null;
}

async function pagesOf(home: CliHome, role: string, limit: number): Promise<number[][]> {
  const pages: number[][] = [];
  for (let next: string | null | undefined; next !== null; ) {
    const args = ['group', 'members', role, '--limit', String(limit), ...(next === undefined ? [] : ['--after', next])];
    const listed = await home.json<Members>(...args);
    pages.push(listed.members.map(({ userId }) => userId));
    next = listed.next;
  }
  return pages;
}

test.concurrent('group members lists each holder of a role once, across its own and Roblox’s pages', async () => {
  await using world = await setUp();
  const { home, roblox } = world;
  configure(world);
  const holders = Array.from({ length: 230 }, (_, index) => 30_000_000_000 + index);
  for (const userId of holders) roblox.group.setMember(userId, [sampleRoles.captain]);
  const captains = [sampleUsers.traineeAndCaptain, ...holders];
  const expected = roblox.group.userIds.filter((id) => roblox.group.held(id)?.includes(sampleRoles.captain));
  expect(expected).toEqual(expect.arrayContaining(captains));
  const pages = await pagesOf(home, 'captain', 90);
  expect(pages.map((page) => page.length)).toEqual([90, 90, expected.length - 180]);
  expect(pages.flat()).toEqual(expected);
  roblox.pagesRepeat = true;
  expect((await pagesOf(home, 'captain', 1_000)).flat()).toEqual(expected);
  const everyone = await home.json<Members>('group', 'members', 'Member', '--limit', '1000');
  expect(everyone.members).toHaveLength(roblox.group.userIds.length);
  expect(roblox.violations()).toEqual([]);
});

test.concurrent('members of the simulated group are listed up to the limit, and errors are one sentence', async () => {
  using home = new CliHome();
  await home.json('rank', 'set', 'Newcomer', 'Captain');
  expect((await home.here(['group', 'members', 'Captain', '--limit', '1'])).stderr).toMatch(
    /There are more: rankd group members \d+ --limit 1 --after 1-\n/,
  );
  const { stdout } = await home.here(['group', 'members', 'Captain']);
  expect(stdout).toMatch(/^USER +NAME\n1001 +-\n(\d+ +-\n)+$/);
  await home.json('rank', 'set', '1001', '10');
  for (const [args, code, error] of [
    [['Captian'], 5, /no role "Captian"\. Did you mean Captain \(rank 50\)\?/],
    [['Guest'], 5, /"Guest" is the guest role, which no member holds\./],
    [['Captain', '--after', 'x'], 2, /"x" is not a cursor of a member list\./],
    [['Captain', '--after', '0-x'], 5, /The simulated group has no such page/],
  ] as const) {
    const refused = await home.here(['group', 'members', ...args]);
    expect([args, refused.code, refused.stderr]).toEqual([args, code, expect.stringMatching(error)]);
  }
});
