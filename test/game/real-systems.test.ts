import { describe, expect, test } from 'vitest';
import type { GameAnswer, GamePlayer, GameRequest } from './game.ts';
import { applied, refused } from './scene.ts';
import { openSystem, type SystemOptions, systemNamed, systems } from './systems.ts';

// Tests commands that once failed with the real sources of Adonis, Basic Admin Remade, HD Admin and Cmdr.

const roles = [
  ['Member', 1],
  ['Trainee', 10],
  ['Sergeant', 20],
  ['Sergeant Major', 30],
  ['[O-1] Officer', 40],
  ['Senior Officer', 50],
  ['🔰 | Captain ⭐️', 60],
  ['𝓥𝓲𝓬𝓮 Ｐｒｅｓｉｄｅｎｔ 𝟮', 70],
].map(([name, rank], index) => ({ id: 70_001 + index, name, rank, canGive: true }));

const serve = (request: GameRequest) =>
  request.url.includes('/v2/roles')
    ? { status: 200, body: JSON.stringify({ success: true, message: 'The group has 8 roles.', roles }) }
    : applied(request);

const players: GamePlayer[] = [
  { id: 1001, name: 'Ann', team: 'Red' },
  { id: 1002, name: 'Bob', team: 'Red' },
  { id: 1003, name: 'Cid', team: 'Blue Team' },
  { id: 1004, name: 'Josh' },
  { id: 1005, name: 'John' },
  { id: 1006, name: 'Joey' },
  { id: 1007, name: 'xX_Sniper_Xx', displayName: 'Alex' },
  { id: 1008, name: 'Twin1', displayName: 'Captain Bob' },
  { id: 1009, name: 'Twin2', displayName: 'Captain Bob' },
];
const users = { offline: 2001, alex: 777_777, admins: 7001, nonadmins: 7002, others: 7003, all: 7004, j: 7005 };
const open = (system: (typeof systems)[number], options: Partial<SystemOptions> = {}) =>
  openSystem(system, { serve, players, users, ...options });

describe.each(systems)('$name', (system) => {
  const promote = system.typed('promote');
  const isLowered = system.name === 'HD Admin';

  test.each<[string, number[], RegExp]>([
    // Words for several players are refused.
    ['all', [], /all is not allowed here; name the players/],
    ['others', [], /others is not allowed here/],
    ['everyone', [], /everyone is not allowed here/],
    ['random', [], /random is not allowed here/],
    ['*', [], /\* is not allowed here/],
    ['**', [], /\*\* is not allowed here/],
    ['.', [], /\. is not allowed here/],
    ['?2', [], /\?2 is not allowed here/],
    ['nonadmins', [], /nonadmins/],
    ['admins', [], /admins/],
    ['$9', [], /\$9/],
    ['vip', [], /vip/],
    ['-ann', [], /-ann/],
    ['%', [], /%/],
    // A name without @ matches the user name or else the display name of a player in this server, but never an absent
    // user.
    ['ann', [1001], /1001 is Officer/],
    ['Alex', [1007], /1007 is Officer/],
    ['ale', [1007], /1007 is Officer/],
    ['@Alex', [777_777], /777777 is Officer\. \(Not in this server\.\)$/],
    ['@ann', [1001], /1001 is Officer\.$/],
    ['xx_', [1007], /1007 is Officer/],
    ['offline', [], /No player here is called offline\. For a user who is not here, type @offline\./],
    ['2001', [2001], /2001 is Officer\. \(Not in this server\.\)$/],
    ['"Captain Bob"', [], /captain bob.* @?Twin1 (and|or) @?Twin2/i],
    // A short or ambiguous word matches no player.
    ['j', [], /j .*type more of the name/],
    ['jo', [], /jo matches Josh, John and Joey here; type more of the name\./],
    ['jos', [1004], /1004 is Officer/],
    // Only commas separate the items of a list, and no item is dropped.
    ['ann,cid', [1001, 1003], /2 of 2 promoted/],
    ['ann, cid', [1001, 1003], /2 of 2 promoted/],
    ['ann , cid', [1001, 1003], /2 of 2 promoted/],
    ['ann ,cid', [1001, 1003], /2 of 2 promoted/],
    ['ann,offline', [], /called offline/],
    ['ann,nobdy', [], /called nobdy/],
    ['ann,2001', [1001, 2001], /2 of 2 promoted\. Not in this server: 2001\./],
    ['ann,ANN,1001,@ann', [1001], /1001 is Officer/],
    // A team can be named by its whole name or by the beginning of it.
    ['%red', [1001], /1 of 2 promoted/],
    ['%blue', [1003], /1003 is Officer/],
    ['%blueteam', [1003], /1003 is Officer/],
    ['%gray', [], /No team here is called gray/],
    ['me', [], /can't change your own rank/],
  ])('%s means %j', async (typed, ids, expected) => {
    await using scene = await open(system);
    const shown = await scene.type('Bob', `${promote} ${typed} because`);
    expect(scene.asked.map(({ robloxUserId }) => robloxUserId).toSorted()).toEqual(ids);
    for (const { reason } of scene.asked) expect(reason).toBe('because');
    expect(shown).toMatch(isLowered ? new RegExp(expected, 'i') : expected);
  });

  test('#2001 is a user id in Cmdr only', async () => {
    await using scene = await open(system);
    const shown = await scene.type('Bob', `${promote} #2001`);
    const isCmdr = system.name === 'Cmdr';
    expect(scene.asked.map(({ robloxUserId }) => robloxUserId)).toEqual(isCmdr ? [2001] : []);
    expect(shown).toMatch(isCmdr ? /2001 is Officer/ : /#2001/);
  });

  test.each<[string, string | number | undefined, string | undefined]>([
    ['Sergeant because', 'Sergeant', 'because'],
    ['Sergeant Major', 'Sergeant Major', undefined],
    ['Sergeant Major because of it', 'Sergeant Major', 'because of it'],
    ['"Sergeant Major" because', 'Sergeant Major', 'because'],
    ['"Sergeant" Major', 'Sergeant', 'Major'],
    ['sergeant-major because', 'sergeant-major', 'because'],
    ['SERGEANT MAJOR because', 'SERGEANT MAJOR', 'because'],
    ['Captain because', 'Captain', 'because'],
    ['O-1 Officer because', 'O-1 Officer', 'because'],
    ['vice president 2 because', 'vice president 2', 'because'],
    ['30 because', 30, 'because'],
    ['70004 because', 70_004, 'because'],
    ['Nothing because', 'Nothing', 'because'],
  ])('setrank ann %s gives the rank %s', async (typed, rank, reason) => {
    await using scene = await open(system);
    await scene.type('Bob', `${system.typed('setrank')} ann ${typed}`);
    const [asked] = scene.asked.filter(({ path }) => path === '/v2/rank');
    const anyCase = (text: string | undefined) =>
      text === undefined ? undefined : expect.stringMatching(new RegExp(`^${text}$`, isLowered ? 'i' : ''));
    expect(asked).toMatchObject({ robloxUserId: 1001, rank: typeof rank === 'number' ? rank : anyCase(rank) });
    expect(asked?.['reason']).toEqual(anyCase(reason));
  });

  test('a rank is never guessed from words that cannot be checked against the roles', async () => {
    await using scene = await open(system, {
      serve: (request) => (request.url.includes('/v2/roles') ? { status: 404, body: '<html>' } : applied(request)),
    });
    expect(await scene.type('Bob', `${system.typed('setrank')} ann Sergeant Major`)).toMatch(/in quotes|its number/);
    expect(scene.asked.filter(({ path }) => path === '/v2/rank')).toEqual([]);
    await scene.type('Bob', `${system.typed('setrank')} ann "Sergeant Major"`);
    await scene.type('Bob', `${system.typed('setrank')} ann 20 because`);
    expect(scene.asked.filter(({ path }) => path === '/v2/rank')).toHaveLength(2);
  });

  test('while roles take long to read, the caller sees progress, and then the reason for the failure', async () => {
    await using scene = await open(system, {
      serve: (request) => (request.url.includes('/v2/roles') ? { raise: 'HttpError: Timedout' } : applied(request)),
    });
    const shown = await scene.type('Bob', `${system.typed('setrank')} ann Sergeant Major`);
    expect(scene.game.output.find((line) => line.startsWith('client '))).toContain('Still working…');
    expect(shown).toMatch(/could not be read: rankd\.example\.com did not respond in time\. Put the role in quotes/);
    expect(scene.asked).toEqual([]);
  });

  test('a list with spaces around its commas loses no name and no reason, however long it is', async () => {
    await using scene = await open(system);
    const shown = await scene.type('Bob', `${promote} ${'ann , '.repeat(30)}cid because`);
    expect(shown).toMatch(/2 of 2 promoted/);
    expect(scene.asked.map(({ robloxUserId, reason }) => [robloxUserId, reason])).toEqual([
      [1001, 'because'],
      [1003, 'because'],
    ]);
  });

  test.each(['(', '%', 'a good one (really)', '+1', '007 is back', 'a "quoted" word'])(
    'the reason %s reaches rankd unchanged',
    async (reason) => {
      await using scene = await open(system);
      await scene.type('Bob', `${promote} ann ${reason}`);
      expect(scene.asked.map((asked) => asked['reason'])).toEqual([reason]);
    },
  );

  test('a demotion of several members lists them, and is made if it is typed again within 20 seconds', async () => {
    await using scene = await open(system);
    const typed = `${system.typed('demote')} jos,john late`;
    expect(await scene.type('Bob', typed)).toMatch(/2 members: Josh and John.*again within 20 seconds/i);
    expect(scene.game.requests).toEqual([]);
    await scene.run('task.wait(21) return true');
    expect(await scene.type('Bob', typed)).toMatch(/again within 20 seconds/);
    expect(await scene.type('Bob', `${system.typed('demote')} jos,joey late`)).toMatch(/Josh and Joey.*again/i);
    expect(await scene.type('Bob', typed)).toMatch(/again within 20 seconds/);
    expect(await scene.type('Bob', typed)).toMatch(/2 of 2 demoted/);
    expect(await scene.type('Bob', typed)).toMatch(/again within 20 seconds/);
    expect(scene.asked.map(({ robloxUserId }) => robloxUserId).toSorted()).toEqual([1004, 1005]);
  });

  test('a simultaneous second command waits for its turn', async () => {
    await using scene = await open(system);
    const both = [scene.type('Bob', `${promote} ann`), scene.type('Bob', `${promote} cid`)];
    await Promise.all(both);
    await scene.run('task.wait(5) return true');
    expect(scene.asked.map(({ robloxUserId }) => robloxUserId)).toEqual([1001, 1003]);
    expect((scene.game.requests[1]?.at ?? 0) - (scene.game.requests[0]?.at ?? 0)).toBeGreaterThanOrEqual(1.9);
  });

  test('in a private server, no rank is changed unless Config allows it', async () => {
    await using scene = await open(system, { privateServerOwnerId: 1002 });
    expect(await scene.type('Bob', `${promote} ann`)).toMatch(/can't be changed in private servers/i);
    expect(scene.game.requests).toEqual([]);
    await using allowed = await open(system, {
      privateServerOwnerId: 1002,
      config: { ...system.config, privateServers: true },
    });
    expect(await allowed.type('Bob', `${promote} ann`)).toMatch(/1001 is Officer/);
    await using reserved = await open(system, { privateServerOwnerId: 0 });
    expect(await reserved.type('Bob', `${promote} ann`)).toMatch(/1001 is Officer/);
  });

  test.each<[string, Partial<SystemOptions>, RegExp]>([
    ['a comma is missing in Config', { configSource: 'return {\n\turl = "x"\n\tsecret = "rankd",\n}' }, /Config/],
    ['Config raises', { configSource: 'error("a mistake of the owner")' }, /Config/],
    ['Config does not return a table', { configSource: 'return 5' }, /Config/],
    ['Config never returns', { configSource: 'task.wait(1e9) return {}' }, /Config/],
    [
      'Config raises when it is read',
      { configSource: 'return setmetatable({}, { __index = function() error("no") end })' },
      /Config/,
    ],
    ['Config is missing', { without: ['Config'] }, /url|Set minGroupRank/],
    ['Rankd is missing', { without: ['Rankd'] }, /Rankd/],
    ['Commands is missing', { without: ['Commands'] }, /Commands/],
    ['a module of Rankd is missing', { without: ['Targets'] }, /Targets|Rankd/],
  ])('if %s, the admin system starts at once, and the command replies with the fix', async (_, options, expected) => {
    await using scene = await open(system, options);
    expect(scene.game.now).toBeLessThan(0.01);
    expect(await scene.type('Bob', `${promote} ann`)).toMatch(expected);
    expect(scene.game.requests).toEqual([]);
  });

  const html = '<html><body>Bad gateway</body></html>';
  test.each<[string, GameAnswer, RegExp]>([
    ['rankd is down', { raise: 'HttpError: ConnectFail' }, /does not accept connections/],
    [
      'rankd is slow',
      { raise: 'HttpError: Timedout' },
      /not known yet whether Ann was changed.*did not respond in time/,
    ],
    ['the connection breaks', { raise: 'HttpError: NetFail' }, /not known yet whether Ann was changed/],
    ['the certificate has expired', { raise: 'HttpError: SslVerificationFail' }, /does not accept .*certificate/],
    [
      'the name cannot be resolved',
      { raise: 'HttpError: DnsResolve' },
      /name rankd\.example\.com could not be resolved/,
    ],
    ["a proxy's page says that rankd is down", { status: 502, body: html }, /not known yet.*can't reach rankd/],
    ['another server answers', { status: 200, body: html }, /is not rankd/],
    [
      'a bot check answers',
      { status: 403, body: html, headers: { 'cf-mitigated': 'challenge' } },
      /only admits browsers/,
    ],
    ['HTTP is disabled', { raise: 'Http requests are not enabled' }, /Allow HTTP Requests/],
    ['rankd is shutting down', refused(503, 'shutting_down'), /rankd says shutting_down/],
  ])('if %s, the caller and the output get one sentence with the cause', async (_, answer, expected) => {
    await using scene = await open(system, { serve: () => answer });
    const shown = await scene.type('Bob', `${promote} ann`);
    expect(shown).toMatch(expected);
    const warnings = scene.game.output.filter((line) => line.startsWith('warn '));
    expect(warnings).toHaveLength(expected.source.includes('shutting') ? 0 : 1);
    expect(await scene.type('Bob', `${promote} all`)).toMatch(/all is not allowed here/);
  });

  test('rankd makes the change even if it restarts in between', async () => {
    let count = 0;
    await using scene = await open(system, {
      serve: (request) => {
        count += 1;
        if (count === 1) return refused(503, 'shutting_down', { retryAfter: 1 });
        return count < 4 ? { raise: 'HttpError: ConnectFail' } : applied(request);
      },
    });
    expect(await scene.type('Bob', `${promote} ann`)).toMatch(/1001 is Officer/);
  });

  test('a Rankd module that is added later is found, by its place or by its tag', async () => {
    for (const [place, tags] of [
      [['ServerScriptService'], {}],
      [['ServerStorage', 'Packages'], { RankdClient: 'ServerStorage/Packages/Rankd' }],
    ] as const) {
      await using scene = await open(system, { without: ['Rankd'], tags });
      await scene.mountRankd([...place]);
      expect(await scene.type('Bob', `${promote} ann`)).toMatch(/1001 is Officer/);
    }
  });
});

test('two commands in one message are both run: with | in Adonis, and with two prefixes in HD Admin', async () => {
  for (const [name, typed] of [
    ['Adonis', ':promote ann | :promote cid'],
    ['HD Admin', ';promote ann ;promote cid'],
  ] as const) {
    await using scene = await open(systemNamed(name));
    await scene.type('Bob', typed);
    await scene.run('task.wait(5) return true');
    expect(scene.asked.map(({ robloxUserId }) => robloxUserId).toSorted(), name).toEqual([1001, 1003]);
  }
});

test.each([
  ['url', '5'],
  ['url', '{}'],
  ['secret', '{}'],
  ['groupId', '"x"'],
  ['minGroupRank', '"high"'],
  ['rankers', '"Bob"'],
  ['rankers', '{ "Bob" }'],
  ['allowSelf', '"no"'],
  ['allowEveryone', '"no"'],
  ['privateServers', '"no"'],
  ['maxTargets', '"many"'],
  ['maxTargets', '0 / 0'],
  ['minNameLength', '"two"'],
  ['announce', '"yes"'],
])('with %s = %s in Config, the reply is one sentence, and no crowd is ranked', async (name, value) => {
  const chat = systemNamed('the chat');
  await using scene = await open(chat, { config: { ...chat.config, [name]: value } });
  const shown = await scene.type('Bob', '/promote all');
  expect(shown).toMatch(/\w \w.*\.$/);
  expect(scene.game.requests).toEqual([]);
});

describe('in the chat', () => {
  const chat = systemNamed('the chat');

  test('a demotion of a team needs a new confirmation if a player has joined the team since', async () => {
    await using scene = await open(chat);
    const config = { ...chat.config, allowSelf: true };
    await using changed = await open(chat, { config });
    for (const one of [scene, changed]) expect(await one.type('Bob', '/demote %red')).toContain('Ann and Bob');
    await changed.game.join({ id: 1010, name: 'Dan', team: 'Red' });
    expect(await changed.type('Bob', '/demote %red')).toContain('That is 3 members: Ann, Bob and Dan.');
    expect(changed.game.requests).toEqual([]);
    expect(await scene.type('Bob', '/demote %red')).toContain('1 of 2 demoted.');
  });

  test('a command that would wait for more than 20 seconds is refused', async () => {
    await using scene = await open(chat);
    const shown = await scene.run<string[]>(`
      local Rankd = require(game:GetService("ServerScriptService").Rankd)
      local shown, left = {}, 14
      for index = 1, 14 do
        task.spawn(function()
          shown[index] = Rankd.command({ kind = "promote", system = "chat", caller = game.Players.Bob, text = "ann" })
          left -= 1
        end)
      end
      repeat task.wait(1) until left == 0
      return shown`);
    const waiting = 'Many of your commands are waiting; type this again when they are done.';
    expect(shown.slice(11)).toEqual(Array(3).fill(waiting));
    expect(scene.asked).toHaveLength(11);
  });

  test('the roles are read once a minute', async () => {
    await using scene = await open(chat);
    const reads = () => scene.game.requests.filter(({ url }) => url.includes('/v2/roles')).length;
    for (const name of ['ann', 'cid']) await scene.type('Bob', `/setrank ${name} Sergeant Major`);
    expect(reads()).toBe(1);
    await scene.run('task.wait(61) return true');
    await scene.type('Bob', '/setrank ann Sergeant Major');
    expect(reads()).toBe(2);
  });

  test('Config sets the minimum number of letters of a name', async () => {
    await using scene = await open(chat, { config: { ...chat.config, minNameLength: 4 } });
    expect(await scene.type('Bob', '/promote jos')).toBe('jos is too short; type more of the name.');
    expect(await scene.type('Bob', '/promote josh')).toMatch(/1004 is Officer/);
  });

  test('a team without players is reported, and the commands are hidden from the list that every player sees', async () => {
    await using scene = await open(chat);
    await scene.game.leave('Cid');
    expect(await scene.type('Bob', '/promote %blue')).toBe('No player is on the team Blue Team.');
    const visible = await scene.run<boolean[]>(`
      local visible = {}
      for _, command in game:GetService("TextChatService"):GetChildren() do
        table.insert(visible, command.AutocompleteVisible)
      end
      return visible`);
    expect(visible).toEqual(Array(5).fill(false));
  });
});

test('Cmdr completes the last name of a list, and leaves the text before it unchanged', async () => {
  await using scene = await open(systemNamed('Cmdr'));
  const names = await scene.run<string[]>(`
    local Cmdr = require(game:GetService("ServerScriptService").Cmdr)
    local who = Cmdr.Registry:GetCommand("promote").Args[1]
    return who.Type.Autocomplete("@offline, 2001,jO")`);
  expect(names.toSorted()).toEqual(['@offline, 2001,Joey', '@offline, 2001,John', '@offline, 2001,Josh']);
});
