import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCli } from '../../src/cli/program.ts';
import { TerminalIo } from '../support/command-io.ts';
import { CliHome } from '../support/run-cli.ts';

let home: CliHome;
beforeEach(() => {
  home = new CliHome();
});
afterEach(() => home[Symbol.dispose]());

interface List {
  list: { id: string; members: Array<{ line: number | null; rankeeId: number; state: string; code: string | null }> };
}

const file = (content: string) => writeFileSync(home.path('passed.txt'), content);
const rankOf = async (user: number) =>
  (await home.json<{ member: { rank: number } }>('rank', 'show', String(user))).member.rank;

test('a list gives its members the rank, continues after refusals, and reports their lines', async () => {
  file(
    '# passed the training\n1001\n\n@Patrol_Pat # was there already\n1010\n 1005\t\n4242\nhttps://www.roblox.com/users/1005/profile\n',
  );
  const args = ['rank', 'set', 'Officer', '--file', 'passed.txt', '--reason', 'training', '-y'];
  const { code, stdout, stderr } = await home.here(args);
  expect(code).toBe(5);
  expect(stdout).toMatch(
    /^LINE {2}MEMBER .*\n5 +1010 +refused +Member 1010 holds Admin .*\n7 +4242 +refused +User 4242 is not a member of the group\.\nlist_\w+: of 5 members, 2 changed; 1 already had the rank; 2 refused\.\n$/,
  );
  expect(stderr).toContain('To retry these members only, run the same command again.');
  expect([await rankOf(1001), await rankOf(1005)]).toEqual([20, 20]);
  const { changes } = await home.json<{ changes: Array<Record<string, string>> }>('history', 'list', '--user', '1001');
  expect(changes[0]).toMatchObject({
    reason: 'training',
    command: expect.stringMatching(/^rankd rank set --file, list_/),
  });
  const { events } = await home.json<{ events: unknown[] }>('audit', 'list', '--action', 'rank.list');
  expect(events).toMatchObject([{ subject: expect.stringMatching(/^list_/), detail: { does: 'begin', members: 5 } }]);
});

test('repeating a list retries refused members, and promotes no member twice until all have succeeded', async () => {
  file('1001\n4242\n');
  const states = async (way = 'promote') =>
    (await home.here(['rank', way, '--file', home.path('passed.txt'), '-y', '--json']))
      .json<List>()
      .list.members.map(({ rankeeId, state }) => `${rankeeId} ${state}`);
  expect((await states()).sort()).toEqual(['1001 changed', '4242 refused']);
  expect((await states()).sort()).toEqual(['1001 done', '4242 refused']);
  expect(await rankOf(1001)).toBe(20);
  file('1001\n');
  expect(await states()).toEqual(['1001 changed']);
  expect(await rankOf(1001)).toBe(50);
  for (const rank of [20, 10]) {
    expect(await states('demote')).toEqual(['1001 changed']); // once a list is completed, it can run again
    expect(await rankOf(1001)).toBe(rank);
  }
});

test.each<[string, string[], string, RegExp]>([
  [
    'an invalid line',
    ['rank', 'promote'],
    '1001\nAnn Lee\n0\n',
    /Not every line of standard input names a user: line 2 "Ann Lee", line 3 "0"\. Nothing was changed\./,
  ],
  ['a list without users', ['rank', 'promote'], '# nobody\n\n', /There are no users in standard input\./],
  ['a rank that the group does not have', ['rank', 'set', '21'], '1001\n', /The group has no rank 21\./],
  [
    'a user as well as a file',
    ['rank', 'demote', '1001'],
    '1001\n',
    /With --file, the users .*\ntry: rankd rank demote --file FILE/,
  ],
  [
    'a user and a role',
    ['role', 'add', '1001', 'VIP'],
    '1001\n',
    /With --file, .*\ntry: rankd role add ROLE --file FILE/,
  ],
  ['no rank', ['rank', 'set'], '1001\n', /Missing required argument 'rank'\.\ntry: rankd rank set --help/],
  [
    'an end for a list',
    ['rank', 'set', '20', '--for', '3d'],
    '1001\n',
    /--for, --until and --lift are for one member at a time\./,
  ],
])('%s is reported before any change', async (_what, command, input, message) => {
  const { code, stderr } = await home.here([...command, '--file', '-', '-y'], { input });
  expect([code, stderr]).toEqual([expect.toBeOneOf([2, 5]), expect.stringMatching(message)]);
  expect((await home.json<{ changes: [] }>('history', 'list')).changes).toEqual([]);
});

test('on a terminal, a list asks once, and changes no member after a no; elsewhere, it needs -y', async () => {
  file('1001\n1005\n');
  const args = ['rank', 'promote', '--file', home.path('passed.txt')];
  const ask = async (answer: string) => {
    const io = new TerminalIo(home, [answer]);
    return { code: await runCli(args, io), io };
  };
  const refused = await home.here(args);
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining('Promote 2 members? This needs confirmation, but there is no terminal.'),
  ]);
  const no = await ask('n');
  expect([no.code, await rankOf(1001)]).toEqual([130, 10]);
  expect(no.io.err).toMatch(/Promote 2 members\? .*Nothing was changed\./s);
  const yes = await ask('y');
  expect([yes.code, await rankOf(1001), await rankOf(1005)]).toEqual([0, 20, 20]);
});

test('--holding changes every member with the role, and then finds none left', async () => {
  const args = ['rank', 'set', 'Officer', '--holding', 'Captain'];
  expect((await home.here(args)).stderr).toContain(
    'Give 2 members with the role Captain (rank 50) the rank Officer? This needs confirmation',
  );
  const { list } = await home.json<List>(...args, '-y');
  expect(list.members.toSorted((one, other) => one.rankeeId - other.rankeeId)).toMatchObject(
    [1003, 1007].map((rankeeId) => ({ line: null, rankeeId, state: 'changed' })),
  );
  expect([await rankOf(1003), await rankOf(1007)]).toEqual([20, 20]);
  const again = await home.here(args);
  expect([again.code, again.stdout]).toEqual([0, 'No member holds Captain (rank 50).\n']);
});

test('a list for a role ends once its refused members no longer hold the role', async () => {
  const args = ['rank', 'promote', '--holding', 'Recruit', '--if-rank', 'Captain', '-y'];
  expect((await home.here(args)).code).toBe(5);
  await home.here(['rank', 'set', '1008', '20']);
  expect((await home.here(args)).stdout).toBe('No member holds Recruit (rank 1).\n');
  const { events } = await home.json<{ events: unknown[] }>('audit', 'list', '--action', 'rank.list');
  expect(events).toMatchObject([{ detail: { does: 'end' } }, { detail: { does: 'begin', members: 1 } }]);
});

test('the owner and the acting account are refused in a list for a role', async () => {
  const { code, stdout } = await home.here(['rank', 'set', 'Officer', '--holding', 'Member', '--at-least', '-y']);
  expect(code).toBe(5);
  expect(stdout).toMatch(/^MEMBER .*\n(.*\n)*9000 +refused .*\n(.*\n)*9001 +refused /);
  expect(stdout).toMatch(/list_\w+: of 13 members, 4 changed; 7 already had the rank or a higher one; 2 refused\.\n$/);
});

test.each<[string, string[], RegExp]>([
  [
    'a user as well as a role',
    ['rank', 'promote', '1001', '--holding', 'Trainee'],
    /so none can be named\.\ntry: rankd rank promote --h/,
  ],
  ['no rank', ['rank', 'set', '--holding', 'Trainee'], /Missing required argument 'rank'\./],
  ['a file as well as a role', ['rank', 'promote', '--holding', 'Trainee', '--file', '-'], /cannot be used with/],
  ['a mistyped role', ['rank', 'promote', '--holding', 'Traine'], /Did you mean Trainee \(rank 10\)\?/],
])('%s is reported before any member is read', async (_what, command, message) => {
  const { code, stderr } = await home.here([...command, '-y']);
  expect([code, stderr]).toEqual([expect.toBeOneOf([2, 5]), expect.stringMatching(message)]);
  expect((await home.json<{ changes: [] }>('history', 'list')).changes).toEqual([]);
});
