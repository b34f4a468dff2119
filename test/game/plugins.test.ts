import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { blocksOf } from '../support/readme-commands.ts';
import type { GamePlayer, GameRequest } from './game.ts';
import { applied, inTurn, refused } from './scene.ts';
import { openSystem, type SystemOptions, systemNamed, systems } from './systems.ts';

const serve = (request: GameRequest) => applied(request);
const team = (size: number): GamePlayer[] =>
  Array.from({ length: size }, (_, index) => ({ id: 1001 + index, name: `Player${index + 1}`, team: 'Blue Team' }));

describe.each(systems)('$name', (system) => {
  const promote = system.typed('promote');

  test('sends every command to rankd and shows the caller its response', async () => {
    await using scene = await openSystem(system, { serve });
    const type = async (kind: Parameters<typeof system.typed>[0], rest: string) => {
      const output = await scene.type('Bob', `${system.typed(kind)} ${rest}`);
      await scene.run('task.wait(2) return true');
      return output;
    };
    expect(scene.game.output).toEqual([]);
    expect(await type('promote', 'ann passed the quiz')).toMatch(/1001 is Officer\.$/);
    await type('demote', 'Cid');
    await type('setrank', 'ann SeniorOfficer well done');
    await type('setrank', 'ann 20');
    await type('suspend', 'cid 3d rude');
    await type('unsuspend', 'cid');
    const bob = { rankerId: 1002, rankerName: 'Bob' };
    const ann = { robloxUserId: 1001, rankeeName: 'Ann', ...bob };
    const cid = { robloxUserId: 1003, rankeeName: 'Cid', ...bob };
    const anyCase = (text: string) => expect.stringMatching(new RegExp(`^${text}$`, 'i'));
    const command = expect.stringMatching(/^\w[\w ]+: \w+$/);
    expect(scene.asked).toEqual([
      { path: '/v2/promote', ...ann, reason: 'passed the quiz', command },
      { path: '/v2/demote', ...cid, command },
      { path: '/v2/rank', ...ann, rank: anyCase('SeniorOfficer'), reason: 'well done', command },
      { path: '/v2/rank', ...ann, rank: 20, command },
      { path: '/v2/suspend', ...cid, duration: 259_200, reason: 'rude', command },
      { path: '/v2/unsuspend', ...cid, command },
    ]);
  });

  test('accepts the name of a user who is not in the server, and reports a name that no user has', async () => {
    await using scene = await openSystem(system, { serve });
    expect(await scene.type('Bob', `${promote} @Offline`)).toMatch(/2001 is Officer\. \(Not in this server\.\)$/);
    expect(scene.asked.map(({ robloxUserId }) => robloxUserId)).toEqual([2001]);
    expect(await scene.type('Bob', `${promote} @Nobody`)).toMatch(/The user nobody was not found\./i);
    expect(scene.game.requests).toHaveLength(1);
  });

  test('accepts a team of 30: each member is changed once, four at a time, and one line reports all outcomes', async () => {
    await using scene = await openSystem(system, {
      config: { maxTargets: 30, allowSelf: true },
      given: { levels: { Player1: 2 } },
      players: team(30),
      ...(system.config && { config: { rankers: '{ 1001 }', maxTargets: 30, allowSelf: true } }),
      serve: async (request) => {
        await scene.clock.sleep(500);
        return request.body.includes('"robloxUserId":1005')
          ? refused(403, 'rank_not_allowed')
          : request.body.includes('"robloxUserId":1006')
            ? refused(404, 'member_not_found')
            : applied(request);
      },
    });
    const shown = await scene.type('Player1', `${promote} %blue`);
    expect(shown).toContain('28 of 30 promoted. Not promoted: ');
    expect(shown).toContain('Player5 (Rank not allowed)');
    expect(shown).toContain('Player6 (Member not found)');
    expect(scene.asked.map(({ robloxUserId }) => robloxUserId).toSorted()).toEqual(team(30).map(({ id }) => id));
    expect(scene.game.maxInFlight).toBe(4);
    const ends = scene.game.output.filter((line) => !line.includes('are done…'));
    expect(ends).toHaveLength(1);
  });

  const systemsWithoutReply = new Set(['HD Admin']);
  test.each<[string, Partial<SystemOptions>, string, RegExp]>([
    [
      'a rank in the group that is too low',
      { config: { groupId: 700, minGroupRank: 100, rankers: 'nil' }, ranks: { 1002: 50 } },
      'ann',
      /Your rank in the group is 50; this needs 100\./,
    ],
    [
      'a rank that Roblox does not report',
      { config: { groupId: 700, minGroupRank: 1, rankers: 'nil' }, isGroupServiceDown: true },
      'ann',
      /Roblox did not report/,
    ],
    ['no group id', { config: { minGroupRank: 1, rankers: 'nil' } }, 'ann', /Set groupId/],
    ['rankers that is not a list', { config: { rankers: '1002' } }, 'ann', /Set rankers in Rankd\.Config/],
    ['a caller who is not in the list', { config: { rankers: '{ 1001 }' } }, 'ann', /You may not do this/],
    ['the caller as the only member', {}, 'Bob', /You can't change your own rank/],
    ['all', {}, 'all', /all is not allowed here/],
    ['others in a list', {}, 'Ann,others', /others is not allowed here|No player/],
    ['more than 20 members', { players: [{ id: 1002, name: 'Bob' }, ...team(25).slice(3)] }, '%blue', /22 members/],
    ['an unknown team', {}, '%gray', /No team here is called gray/],
    ['no name', {}, '', /Usage: |is missing/],
  ])('sends nothing for %s, and shows the caller the reason', async (_, options, who, expected) => {
    await using scene = await openSystem(system, { serve, ...options });
    expect(await scene.type('Bob', `${promote} ${who}`.trim())).toMatch(expected);
    expect(scene.game.requests).toEqual([]);
  });

  test('changes nothing for a player without an admin level', async () => {
    await using scene = await openSystem(system, { serve });
    const shown = await scene.type('Ann', `${promote} cid`, 5);
    if (systemsWithoutReply.has(system.name)) expect(shown).toBeUndefined();
    else expect(shown).toMatch(/permission|may not/);
    expect(scene.game.requests).toEqual([]);
  });

  test('reports an unknown outcome as unknown, and progress only after three seconds', async () => {
    await using scene = await openSystem(system, { serve: () => ({ raise: 'HttpError: NetFail' }) });
    expect(await scene.type('Bob', `${promote} ann`)).toMatch(/It is not known yet whether Ann was changed/);
    expect(scene.game.output[0]).toContain('Still working…');
    expect(scene.game.requests.filter(({ at }) => at < 3).length).toBeGreaterThan(1);
  });
});

describe('the members named in a command', () => {
  const chat = systemNamed('the chat');
  const players = ['Ann', 'Anna', 'Bob', 'Cid'].map((name, index) => ({
    id: [1001, 1004, 1002, 1003][index] ?? 0,
    name,
  }));
  test.each<[string, number[]]>([
    ['ann', [1001]],
    ['anna,CID', [1004, 1003]],
    ['@ann', [1001]],
    ['1003', [1003]],
    ['ann,1001,@ann,ANN', [1001]],
    ['@offline,2002', [2001, 2002]],
    ['an', []],
    ['admins', []],
    ['me', []],
  ])('for %s are %j', async (who, ids) => {
    await using scene = await openSystem(chat, { serve, players, users: { offline: 2001, admins: 2003, an: 2004 } });
    const output = await scene.type('Bob', `/promote ${who}`);
    expect(scene.asked.map(({ robloxUserId }) => robloxUserId)).toEqual(ids);
    if (who === 'an') expect(output).toBe('an matches Ann and Anna here; type more of the name.');
  });

  test.each<[string, number]>([
    ['all', 4],
    ['others', 3],
    ['random', 1],
  ])('for %s are %i players if Config allows it', async (who, count) => {
    await using scene = await openSystem(chat, {
      ...{ serve, players, config: { allowEveryone: true, allowSelf: true } },
    });
    await scene.type('Bob', `/promote ${who}`);
    expect(new Set(scene.asked.map(({ robloxUserId }) => robloxUserId)).size).toBe(count);
  });

  test('for others are reported as missing if no other player is here', async () => {
    const alone = { players: [{ id: 1002, name: 'Bob' }], config: { allowEveryone: true } };
    await using scene = await openSystem(chat, { serve, ...alone });
    expect(await scene.type('Bob', '/promote others')).toContain('No other player is here.');
    expect(scene.game.requests).toEqual([]);
  });
});

describe('a command:', () => {
  const basicAdmin = systemNamed('Basic Admin Essentials');

  test('the reply names five members who were not changed, leaves out the caller, and lists unknown outcomes separately', async () => {
    await using scene = await openSystem(basicAdmin, {
      players: [...team(9), { id: 1002, name: 'Bob', team: 'Blue Team' }].filter(({ name }) => name !== 'Player2'),
      serve: (request) =>
        request.body.includes('Player9') ? { raise: 'HttpError: Aborted' } : refused(403, 'rank_not_allowed'),
    });
    expect(await scene.type('Bob', ':promote %blue')).toMatch(
      /0 of 9 promoted\. Not promoted: (\w+ \([\w ]+\), ){4}\w+ \([\w ]+\) and 3 more\. Not known yet: Player9; check again in a minute\.$/,
    );
    expect(scene.asked.map(({ robloxUserId }) => robloxUserId)).not.toContain(1002);
  });

  test('the reply to a test key states that nothing changed', async () => {
    const message = 'Test key, nothing changed: Ann would be Officer.';
    await using scene = await openSystem(basicAdmin, { serve: (request) => applied(request, { message }) });
    expect(await scene.type('Bob', ':promote ann,cid')).toContain(
      'Test key, nothing changed: 2 of 2 would be promoted.',
    );
  });

  test.each([
    ['setrank ann', 'setrank <who> <rank or role> [reason]'],
    ['suspend ann', 'suspend <who> <30m, 12h or 3d> [reason]'],
    ['suspend ann tomorrow', 'tomorrow is not a duration'],
    ['suspend ann -3d', '-3d is not a duration'],
    ['suspend ann 99999d', '99999d is not a duration'],
  ])('the reply to %s shows the usage or the mistake', async (typed, expected) => {
    await using scene = await openSystem(basicAdmin, { serve });
    expect(await scene.type('Bob', `:${typed}`)).toContain(expected);
    expect(scene.game.requests).toEqual([]);
  });

  test.each([
    ['the chat', '/promote ann'],
    ['Cmdr', 'promote Ann'],
  ])('in %s, no player can use a command until the owner has set who may', async (name, typed) => {
    await using scene = await openSystem(systemNamed(name), { serve, config: { rankers: 'nil' } });
    expect(await scene.type('Bob', typed)).toContain('Set minGroupRank or rankers in Rankd.Config');
    expect(scene.game.requests).toEqual([]);
  });

  test('a Cmdr script with an unknown name reports which names it can have', async () => {
    const cmdr = systemNamed('Cmdr');
    const promote = cmdr.scripts().find(({ path }) => path.at(-1) === 'promote');
    const path = [...(promote?.path ?? []).slice(0, -1), 'rankup'];
    const scripts = [...cmdr.scripts(), { class: 'ModuleScript' as const, path, source: promote?.source ?? '' }];
    await using scene = await openSystem(cmdr, { serve, scripts });
    const registry = 'require(game:GetService("ServerScriptService").Cmdr).Registry';
    const described = await scene.run(`return ${registry}:GetCommand("rankup").Description`);
    expect(described).toBe('Rename this script: promote, demote, setrank, suspend or unsuspend.');
  });

  test('the hook in docs/in-game.md lets callers in Config run it in Cmdr', async () => {
    const hook = blocksOf('docs/in-game.md', 'lua').find((block) => block.includes('RegisterHook')) ?? '';
    await using scene = await openSystem(systemNamed('Cmdr'), { serve, given: { isEmpty: true } });
    await scene.run(`${hook}\nreturn true`);
    expect(await scene.type('Ann', 'promote Cid')).toContain('You may not do this.');
    expect(await scene.type('Bob', 'promote Cid')).toContain('1003 is Officer.');
    expect(scene.game.requests).toHaveLength(1);
  });

  test('rankd decides, regardless of ranks cached by the game', async () => {
    const message = 'Ann is Officer.';
    await using scene = await openSystem(basicAdmin, {
      ranks: { 1001: 200, 1002: 255 },
      config: { groupId: 700, minGroupRank: 100 },
      serve: inTurn((request) => applied(request, { message })),
    });
    expect(await scene.type('Bob', ':promote ann')).toContain(message);
    expect(scene.asked[0]).not.toHaveProperty('rank');
  });

  test('without a player, such as from a console, it changes nothing', async () => {
    await using scene = await openSystem(basicAdmin, { serve });
    const output = await scene.run(`
      local Commands = require(game:GetService("ServerScriptService").Rankd.Commands)
      return Commands.run({ kind = "promote", system = "a console", text = "ann" })`);
    expect(output).toContain('Only a player can');
    expect(scene.game.requests).toEqual([]);
  });

  test('any typed text gets a sentence as the reply and raises no error', async () => {
    await using scene = await openSystem(systemNamed('the chat'), { serve });
    const hostile = [
      '%',
      '%%',
      ']]',
      '"',
      '\\',
      '{}',
      '<b>',
      '\u0000',
      '😀',
      ',',
      ',,',
      '@',
      '?',
      '1e9',
      '0',
      '-1',
      'me',
    ];
    const word = fc.oneof(
      fc.constantFrom(...hostile, 'ann', 'cid', 'ann', '3d'),
      fc.string({ unit: 'binary', maxLength: 12 }),
    );
    const lines = fc.sample(fc.tuple(fc.constantFrom(...kinds), fc.array(word, { maxLength: 5 })), {
      numRuns: 200,
      seed: 7,
    });
    const output = await scene.run<string[]>(
      `
      local given = ...
      local Commands = require(game:GetService("ServerScriptService").Rankd.Commands)
      local told = {}
      for index, line in given do
        told[index] = Commands.run({ kind = line[1], system = "test", caller = game.Players.Bob, text = table.concat(line[2], " ") })
        task.wait(2)
      end
      return told`,
      lines,
    );
    expect(output).toHaveLength(lines.length);
    for (const [index, text] of output.entries()) expect(text, JSON.stringify(lines[index])).toMatch(/^Usage: |\w \w/);
    expect(scene.game.output).toEqual([]);
    expect(scene.asked.length).toBeGreaterThan(5);
  });
});

const kinds = ['promote', 'demote', 'setrank', 'suspend', 'unsuspend'] as const;
