import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { rankBody } from '../support/answers.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { startFakeDiscord } from '../support/fake-discord.ts';
import { type FakeOpenCloud, sampleUsers, startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { runOnTerminal } from '../support/pseudo-terminal.ts';
import { CliHome } from '../support/run-cli.ts';

async function setUp(): Promise<{
  home: CliHome;
  roblox: FakeOpenCloud;
  env: Record<string, string>;
  flags: string[];
}> {
  const home = new CliHome();
  onTestFinished(() => home[Symbol.dispose]());
  const roblox = await startFakeOpenCloud();
  onTestFinished(() => roblox.close());
  writeFileSync(home.path('cloud.key'), roblox.apiKey, { mode: 0o600 });
  return {
    home,
    roblox,
    env: { RANKD_PLATFORM_BASE_URL: roblox.baseUrl, RANKD_PLATFORM_LEGACY_BASE_URL: roblox.legacyBaseUrl },
    flags: ['--group', String(roblox.groupId), '--credential-file', './cloud.key'],
  };
}

test('on a terminal, init asks, never shows the key, and creates a configuration, a private key file and a working game key', async () => {
  const { home, roblox, env: cloud } = await setUp();
  await using channel = await startFakeDiscord();
  const env = { ...cloud, RANKD_WEBHOOKS_ALLOW_PRIVATE: '127.0.0.1' };
  const { code, screen } = await runOnTerminal(home, ['init'], {
    env,
    answers: [
      ['Group id', 'ranger'],
      ['Group id', '4711'],
      ['Roblox key (', `rk_live_${'x'.repeat(36)}`],
      ['Roblox key (', 'a-key-of-another'],
      ['Roblox key (', roblox.apiKey],
      ['Group id', String(roblox.groupId)],
      ['the ladder', ''],
      ['key for your game', 'my game!'],
      ['key for your game', 'y'],
      ['Name of the key', ''],
      ['Place id', '42'],
      ['Public address', 'http://rankd.example.com'],
      ['Public address', 'rankd'],
      ['Public address', 'http://127.0.0.1:7265'],
      ['Public address', '192.168.1.5'],
      ['Public address', 'rankd.example.com/'],
      ['Which admin system should get the commands', 'Kohl'],
      ['Which admin system should get the commands', ''],
      ['Address of a Discord webhook', 'https://discord.gg/not-to-be-shown'],
      ['Address of a Discord webhook', 'https://bot.example/not-to-be-shown'],
      ['Address of a Discord webhook', 'https://10.1.2.3/api/webhooks/1487000000000000857/not-to-be-shown'],
      ['Address of a Discord webhook', channel.address.replace(/857\/(?=[^/]+$)/, '858/')],
      ['Address of a Discord webhook', channel.address],
      ['Start rankd now', 'n'],
    ],
  });
  expect(code, screen).toBe(0);
  expect(screen).not.toMatch(new RegExp(`${roblox.apiKey}|a-key-of-another|rk_live_xxx`));
  expect(screen).toContain('use the Roblox key here');
  expect(screen).toContain('Roblox does not accept this key (401 0: Invalid API Key).\n');
  expect(screen).toContain('Roblox has no such group (404 ');
  expect(screen).toContain('Member and Recruit share rank 1: the number 1 means Recruit');
  expect(screen).toContain('https://rankd needs a full host name');
  expect(screen).toContain("Roblox's servers can't reach 192.168.1.5.");
  expect(screen).toContain('The key acts as user RankBot (9001), rank 200');
  expect(screen).toContain('with group:write for group');
  expect(screen).toContain('It must be a group id');
  expect(screen).toContain('Type one of Adonis, ');
  expect(readFileSync(home.path('Rankd.rbxmx'), 'utf8')).toMatch(
    new RegExp(`url = "https://rankd\\.example\\.com",[^]*groupId = ${roblox.groupId},[^]*minGroupRank = 200,`),
  );
  const steps = [...screen.matchAll(/^ {2}(\d)\. (.*)$/gm)];
  expect(steps.map(([, number]) => Number(number))).toEqual([1, 2, 3, 4, 5, 6]);
  expect(steps.map(([, , step]) => step)).toEqual([
    'Start it: rankd serve',
    'Point https://rankd.example.com at http://127.0.0.1:7265 with a reverse proxy or a tunnel (docs/hosting.md), then check it: rankd doctor --url',
    expect.stringMatching(/a secret named rankd .*, for the domain rankd\.example\.com\.$/),
    expect.stringContaining('Allow HTTP Requests'),
    expect.stringContaining(`right-click ServerScriptService, Insert from File: ${home.path('Rankd.rbxmx')}`),
    expect.stringMatching(/^Publish the game, join it, and type: \/promote NAME \(.* of rank 200 or above/),
  ]);
  expect(statSync(home.path('roblox.key')).mode & 0o777).toBe(0o600);
  expect(readFileSync(home.path('roblox.key'), 'utf8')).toBe(`${roblox.apiKey}\n`);
  const yaml = readFileSync(home.path('rankd.yaml'), 'utf8');
  expect(yaml).toMatch(new RegExp(`^  id: ${roblox.groupId} `, 'm'));
  expect(yaml).toMatch(/^ {2}ladder: \[1, 10, 20, 50\]/m);
  expect(yaml).toMatch(/^ {2}privileged_roles: operator$/m);
  expect(yaml).toMatch(/^ {2}public_url: https:\/\/rankd\.example\.com$/m);

  for (const message of [
    'an invitation to a Discord server, not a webhook',
    'This is not the address of a Discord webhook.',
    '10.1.2.3 is not public',
    'Discord has no webhook at this address (404)',
    'Created webhook "staff-log". staff-log: the target accepted the test event (200,',
  ])
    expect(screen).toContain(message);
  expect(screen).not.toMatch(/not-to-be-shown|that-nobody-may-see/);
  expect(channel.discord.messages).toHaveLength(1);

  const [secret = ''] = /rk_live_\w+/.exec(screen) ?? [];
  expect(screen.split('\n').slice(-5)).toEqual([
    '',
    secret,
    '',
    expect.stringContaining('a secret named rankd'), // instructions for the key, shown only once
    '',
  ]);
  expect(screen).toContain('which is also saved in my-game.key:\n');
  expect(readFileSync(home.path('my-game.key'), 'utf8')).toBe(`${secret}\n`);
  expect(statSync(home.path('my-game.key')).mode & 0o777).toBe(0o600);
  await using daemon = await DaemonHere.start(home, { env });
  const request = { key: secret, body: rankBody({ rankerId: 1003 }) };
  expect(await daemon.post('/v1/ranker?placeid=42', request)).toMatchObject({ status: 200 });
  const titles = () => channel.discord.messages.flatMap(({ embeds }) => embeds.map(({ title }) => title));
  await expect.poll(titles).toContainEqual(expect.stringMatching(/promoted$/));
});

test('on a terminal, init starts the daemon itself: all but three questions need only Enter, and then a game can change a rank', async () => {
  const { home, roblox, env } = await setUp();
  const { code, screen } = await runOnTerminal(home, ['init'], {
    columns: 120,
    env: { ...env, RANKD_SERVER_PORT: '0' },
    answers: [
      ['Group id', String(roblox.groupId)],
      ['Roblox key (', roblox.apiKey],
      ['the ladder', ''],
      ['key for your game', ''],
      ['Name of the key', ''],
      ['Place id', ''],
      ['Public address', 'rankd.example.com'],
      ['Which admin system should get the commands', ''],
      ['Address of a Discord webhook', ''],
      ['Start rankd now', ''],
      [
        'rankd listens on',
        async (shown) => {
          const [, url = ''] = /listens on (http:\S+)/.exec(shown) ?? [];
          const [key = ''] = /rk_live_\w+/.exec(shown) ?? [];
          await home.json('whitelist', 'add', '42');
          const answer = await fetch(`${url}/v1/ranker?placeid=42`, {
            method: 'POST',
            headers: { authorization: `Bearer ${key}` },
            body: JSON.stringify(rankBody({ rankerId: 1003 })),
          });
          expect(answer.status).toBe(200);
          return '\x03';
        },
      ],
    ],
  });
  expect(code, screen).toBe(0);
  expect(screen).toMatch(
    /rankd listens on .*\nrankd runs in this window until you press Ctrl-C\. To start it again: rankd serve\n/,
  );
  expect(screen).toMatch(/^Roles it can give, by rank: 1 \(Member\), 1 \(Recruit\), /m);
  expect(screen).toContain('ranks in Sample Fellowship');
  expect(screen).not.toContain('Start it: ');
  expect(roblox.violations()).toEqual([]);
});

test('on a terminal, init reports a taken port, and does not claim that the daemon is running', async () => {
  const { home, env, flags } = await setUp();
  const other = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const { code, screen } = await runOnTerminal(home, ['init', ...flags, '--url', 'https://rankd.example.com'], {
    env: { ...env, RANKD_SERVER_PORT: String(port) },
    answers: [
      ['the ladder', ''],
      ['key for your game', 'n'],
      ['Which admin system should get the commands', ''],
      ['Address of a Discord webhook', ''],
      ['Start rankd now', ''],
    ],
  });
  expect(code).toBe(69);
  expect(screen).toContain(`error: Another program is already listening on 127.0.0.1:${port}`);
  expect(screen).not.toContain('rankd runs in this window');
});

test('role names in a question cannot control the terminal', async () => {
  const { home, roblox, env } = await setUp();
  const [trainee] = roblox.group.roles.filter(({ rank }) => rank === 10);
  Object.assign(trainee ?? {}, { name: 'Tr\x1b]0;OWNED\x07' });
  const { code, screen } = await runOnTerminal(home, ['init'], {
    env,
    answers: [
      ['Group id', String(roblox.groupId)],
      ['Roblox key (', roblox.apiKey],
      ['the ladder', 'nope'],
      ['the ladder', 'No'],
      ['key for your game', 'n'],
      ['Public address', ''],
      ['Address of a Discord webhook', ''],
      ['Start rankd now', 'n'],
    ],
  });
  expect(screen).toContain('Type y for yes or n for no; Enter means yes.');
  expect(screen).toContain('Create the game key: rankd key create my-game\n');
  expect(screen).toContain('Let your game use the key: rankd whitelist add PLACE --key my-game\n');
  expect(screen).toContain('set it as server.public_url in rankd.yaml.\n');
  expect(screen).toContain('insert it where the command says: rankd game write --min-rank 200\n');
  expect(existsSync(home.path('Rankd.rbxmx'))).toBe(false);
  expect(screen).toContain('later: rankd key create my-game, then rankd whitelist add PLACE\n');
  expect(readFileSync(home.path('rankd.yaml'), 'utf8')).not.toMatch(/^ *ladder:/m);
  expect(code, screen).toBe(0);
  expect(screen).toContain('Tr\uFFFD]0;OWNED\uFFFD');
  expect(screen).not.toContain('\x1b]0;');
});

test('Ctrl-C at a question exits with 130 and leaves no files', async () => {
  const { home, env } = await setUp();
  const { code, screen } = await runOnTerminal(home, ['init'], { env, answers: [['Group id', '\x03']] });
  expect(code).toBe(130);
  expect(screen).toMatch(/\nNothing was written\.\n$/);
  expect(existsSync(home.path('rankd.yaml'))).toBe(false);
});

test('without a terminal, init needs only flags; the secret is written to a file', async () => {
  const { home, env, flags } = await setUp();
  const { code, stdout, stderr } = await home.here(
    ['init', ...flags, '--ladder', '--key', 'my-game', '--place', '42', '--out', 'game.key', '--json'],
    { env },
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({
    v: 1,
    file: home.path('rankd.yaml'),
    ladder: [{ rank: 1, name: 'Recruit' }, {}, {}, {}],
  });
  expect(readFileSync(home.path('game.key'), 'utf8')).toMatch(/^rk_live_/);
  expect((await home.here(['config', 'check'], { env })).code).toBe(0);
  expect((await home.here(['whitelist', 'check', '42', '--key', 'my-game'], { env })).code).toBe(0);
});

test('serve accepts the ladder that init writes, without the roles that share a rank', async () => {
  const { home, roblox, env, flags } = await setUp();
  roblox.group.roles.push({ id: 50_051, name: 'Pilot', rank: 50 });
  const { code, stderr } = await home.here(['init', ...flags, '--ladder', '--key', 'game'], { env });
  expect(code, stderr).toBe(0);
  expect(stderr).toContain(
    'Left out of the ladder, because each shares its rank with another role: 50 (Pilot), 50 (Captain).',
  );
  expect(readFileSync(home.path('rankd.yaml'), 'utf8')).toMatch(/^ {2}ladder: \[1, 10, 20\]/m);
  expect(await home.here(['config', 'check'], { env })).toMatchObject({ code: 0, stderr: '' });
  await using daemon = await DaemonHere.start(home, { env });
  expect((await fetch(`${daemon.url}/readyz`)).status).toBe(200);
});

test('the ladder that init writes has the id of a role if its rank is ambiguous', async () => {
  const { home, env, flags } = await setUp();
  const base = { ...env, RANKD_GROUP_RANK_1: 'base' };
  expect((await home.here(['init', ...flags, '--ladder'], { env: base })).code).toBe(0);
  expect(readFileSync(home.path('rankd.yaml'), 'utf8')).toMatch(/^ {2}ladder: \[70000010, 10, 20, 50\]/m);
  expect((await home.here(['config', 'check'], { env: base })).code).toBe(0);
});

test('init lists the roles that have power over others, and those with unknown permissions', async () => {
  const { home, roblox, env, flags } = await setUp();
  const withMemberKey = await home.here(['init', ...flags], { env });
  expect(withMemberKey.stderr).toContain(
    'Roblox does not show what 1 (Recruit), 10 (Trainee), 20 (Officer), 50 (Captain) may do.',
  );
  roblox.credential.userId = sampleUsers.owner;
  const withOwnerKey = await home.here(['init', ...flags, '--force'], { env });
  expect(withOwnerKey.stderr).toContain(
    'Of these roles, 50 (Captain), 200 (Admin) have power over others, so only the operator',
  );
});

test('for the name of a key from a trial, init prints the command that adopts the key', async () => {
  const { home, env, flags } = await setUp();
  await home.here(['key', 'create', 'my-game']);
  const { code, stderr } = await home.here(['init', ...flags, '--key', 'my-game'], { env });
  expect(code).toBe(4);
  expect(stderr).toContain('or leave out --key and adopt that one afterwards: rankd key adopt my-game\n');
});

test('the Roblox key can come from standard input and is stored in a private file', async () => {
  const { home, roblox, env } = await setUp();
  const args = ['init', '--group', String(roblox.groupId), '--credential-file', '-'];
  expect((await home.here(args, { env, input: `${roblox.apiKey}\n` })).code).toBe(0);
  expect(statSync(home.path('roblox.key')).mode & 0o777).toBe(0o600);
});

test('without a terminal or flags, init exits with 2 and names the flags', async () => {
  const { home, env } = await setUp();
  const { code, stderr } = await home.here(['init'], { env });
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr:
      'error: Without a terminal, init needs --group and --credential-file.\ntry: rankd init --group 4199740 --credential-file ./roblox.key\n',
  });
});

test('an existing rankd.yaml is never overwritten, and --force preserves it next to the new one', async () => {
  const { home, env, flags } = await setUp();
  writeFileSync(home.path('rankd.yaml'), '# mine\n');
  expect((await home.here(['init', ...flags], { env })).code).toBe(4);
  expect(readFileSync(home.path('rankd.yaml'), 'utf8')).toBe('# mine\n');
  expect((await home.here(['init', ...flags, '--force'], { env })).code).toBe(0);
  expect(readFileSync(home.path('rankd.yaml.old'), 'utf8')).toBe('# mine\n');
});

test.each<[what: string, spoil: (roblox: FakeOpenCloud) => unknown, code: number, words: string]>([
  [
    'a key that Roblox does not know',
    (roblox) => Object.assign(roblox.credential, { apiKey: 'another' }),
    77,
    'error: Roblox does not accept this key (401 0: Invalid API Key).\ntry: copy the key again from the Creator Dashboard (API Keys)',
  ],
  ['a key that has expired', (roblox) => Object.assign(roblox.credential, { expired: true }), 77, 'Roblox key'],
  [
    'an account without permission to change ranks',
    (roblox) => {
      for (const role of roblox.group.roles) role.changeRank = false;
    },
    5,
    'lack the permission "Manage lower-ranked member ranks"',
  ],
  [
    'an account below all roles',
    (roblox) => roblox.group.setMember(roblox.credential.userId, []),
    5,
    'No role of the group is below',
  ],
  [
    'an account outside the group',
    (roblox) => roblox.group.removeMember(roblox.credential.userId),
    5,
    'is not a member of the group. It must join',
  ],
  [
    'a group with an unknown base role',
    (roblox) => Object.assign(roblox, { hasPublicRoles: false, rolesField: 'absent' }),
    69,
    'which of them every member holds',
  ],
])('with %s, init writes nothing', async (_what, spoil, code, words) => {
  const { home, roblox, env, flags } = await setUp();
  spoil(roblox);
  const result = await home.here(['init', ...flags], { env });
  expect(result).toMatchObject({ code });
  expect(result.stderr).toContain(words);
  expect(existsSync(home.path('rankd.yaml'))).toBe(false);
});

test('an acting account or key permissions that Roblox does not report are shown as unknown, and do not stop init', async () => {
  const { home, roblox, env, flags } = await setUp();
  const oddScopes = [{ name: 'group', operations: null }];
  Object.assign(roblox.credential, { oddScopes, userId: undefined, expirationTimeUtc: '0001-01-01T00:00:00Z' });
  const { code, stderr } = await home.here(['init', ...flags], { env });
  expect(code).toBe(0);
  expect(stderr).toMatch(/^The key works\.$/m);
  expect(stderr).toMatch(
    /not show whether the key can change roles.*group:write.*\n.*not show which account the key acts as, or/,
  );
  expect(stderr).not.toContain('Roles it can give');
});

test('a key that Roblox does not describe does not stop init, and one without the scope is reported as such', async () => {
  const { home, roblox, env, flags } = await setUp();
  roblox.credential.scopes = [{ name: 'group', operations: ['read'] }];
  const lacking = await home.here(['init', ...flags], { env });
  expect(lacking).toMatchObject({ code: 0, stderr: expect.stringContaining('does not list group:write') });
  roblox.faults.add({ operation: 'introspect', kind: 'status 403', body: '<html>no</html>', times: 99 });
  const { code, stderr } = await home.here(['init', ...flags, '--force'], { env });
  expect(code).toBe(0);
  expect(stderr).toMatch(
    /not show whether the key can change roles.*group:write.*\n.*not show which account the key acts as/,
  );
});

test('while Roblox is down, init works with --no-check; without it, init exits with 69 and writes nothing', async () => {
  const { home, roblox, env, flags } = await setUp();
  await roblox.close();
  const impatient = { ...env, RANKD_SERVER_DEADLINE: '1s' };
  expect((await home.here(['init', ...flags], { env: impatient })).code).toBe(69);
  expect(existsSync(home.path('rankd.yaml'))).toBe(false);
  expect((await home.here(['init', ...flags, '--no-check'], { env })).code).toBe(0);
  expect(existsSync(home.path('rankd.yaml'))).toBe(true);
});
