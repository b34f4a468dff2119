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
  list: { id: string; members: Array<{ line: number; rankeeId: number; state: string; code: string | null }> };
}

const file = (content: string) => writeFileSync(home.path('passed.txt'), content);
const rankOf = async (user: number) =>
  (await home.json<{ member: { rank: number } }>('rank', 'show', String(user))).member.rank;

test('a list gives its members the rank, skips refused ones, and reports their lines', async () => {
  file(
    '# passed the training\n1001\n\n@Patrol_Pat # was there already\n1010\n 1005\t\n4242\nhttps://www.roblox.com/users/1005/profile\n',
  );
  const args = ['rank', 'set', 'Officer', '--file', 'passed.txt', '--reason', 'training', '-y'];
  const { code, stdout, stderr } = await home.here(args);
  expect(code).toBe(5);
  expect(stdout).toMatch(
    /^LINE {2}MEMBER .*\n5 +1010 +refused +Member 1010 holds Admin .*\n7 +4242 +refused +User 4242 is not a member of the group\.\nlist_\w+: of 5 members, 2 changed; 1 had the rank already; 2 refused\.\n$/,
  );
  expect(stderr).toContain('The same command tries these lines again, and leaves the others alone.');
  expect([await rankOf(1001), await rankOf(1005)]).toEqual([20, 20]);
  const { changes } = await home.json<{ changes: Array<Record<string, string>> }>('history', 'list', '--user', '1001');
  expect(changes[0]).toMatchObject({
    reason: 'training',
    command: expect.stringMatching(/^rankd rank set --file, list_/),
  });
  const { events } = await home.json<{ events: unknown[] }>('audit', 'list', '--action', 'rank.list');
  expect(events).toMatchObject([{ subject: expect.stringMatching(/^list_/), detail: { does: 'begin', members: 5 } }]);
});

test('the same list retries refused members, and promotes no member twice until all succeeded', async () => {
  file('1001\n4242\n');
  const states = async (way = 'promote') =>
    (await home.here(['rank', way, '--file', home.path('passed.txt'), '-y', '--json']))
      .json<List>()
      .list.members.map(({ rankeeId, state }) => `${rankeeId} ${state}`);
  expect((await states()).sort()).toEqual(['1001 changed', '4242 refused']);
  expect((await states()).sort()).toEqual(['1001 done', '4242 refused']);
  expect(await rankOf(1001)).toBe(20);
  file('1001\n');
  expect(await states()).toEqual(['1001 changed']); // another list
  expect(await rankOf(1001)).toBe(50);
  for (const rank of [20, 10]) {
    expect(await states('demote')).toEqual(['1001 changed']); // the earlier run was complete
    expect(await rankOf(1001)).toBe(rank);
  }
});

test.each<[string, string[], string, RegExp]>([
  [
    'a line that names no user',
    ['rank', 'promote'],
    '1001\nAnn Lee\n0\n',
    /No user in standard input: line 2 "Ann Lee", line 3 "0"\. Nothing was changed\./,
  ],
  ['a list with nobody in it', ['rank', 'promote'], '# nobody\n\n', /There is no user in standard input\./],
  ['a rank that the group does not have', ['rank', 'set', '21'], '1001\n', /The group has no rank 21\./],
  ['a user beside the file', ['rank', 'demote', '1001'], '1001\n', /With --file, the users are listed/],
  ['no rank', ['rank', 'set'], '1001\n', /With --file, the users are listed/],
  [
    'an end for all of them',
    ['rank', 'set', '20', '--for', '3d'],
    '1001\n',
    /--for, --until and --lift are for one member at a time\./,
  ],
])('%s is reported before anything is changed', async (_what, command, input, message) => {
  const { code, stderr } = await home.here([...command, '--file', '-', '-y'], { input });
  expect([code, stderr]).toEqual([expect.toBeOneOf([2, 5]), expect.stringMatching(message)]);
  expect((await home.json<{ changes: [] }>('history', 'list')).changes).toEqual([]);
});

test('on a terminal it asks once, and a no changes no member; elsewhere it needs -y', async () => {
  file('1001\n1005\n');
  const args = ['rank', 'promote', '--file', home.path('passed.txt')];
  const ask = async (answer: string) => {
    const io = new TerminalIo(home, [answer]);
    return { code: await runCli(args, io), io };
  };
  const refused = await home.here(args);
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining('Promote 2 members? This needs confirmation, and there is no terminal.'),
  ]);
  const no = await ask('n');
  expect([no.code, await rankOf(1001)]).toEqual([130, 10]);
  expect(no.io.talk).toMatch(/Promote 2 members\? .*Nothing was changed\./s);
  const yes = await ask('y');
  expect([yes.code, await rankOf(1001), await rankOf(1005)]).toEqual([0, 20, 20]);
});
