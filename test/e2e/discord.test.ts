import { appendFileSync, writeFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { runCli } from '../../src/cli/program.ts';
import { TerminalIo } from '../support/command-io.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { discordPublicKey, discordSection, discordIds as ids } from '../support/discord-interactions.ts';
import { startFakeDiscord } from '../support/fake-discord.ts';
import { sampleUsers } from '../support/fake-open-cloud/index.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { postgresDatabase } from '../support/postgres-database.ts';
import { CliHome } from '../support/run-cli.ts';

async function fakeDiscord() {
  const fake = await startFakeDiscord();
  onTestFinished(() => fake[Symbol.asyncDispose]());
  return fake;
}

test.each(['SQLite', 'PostgreSQL'])(
  'discord setup leads to a working /promote, which history, audit, status and doctor show, on %s',
  async (engine) => {
    const { discord, apiBaseUrl } = await fakeDiscord();
    using home = new CliHome();
    const store = engine === 'SQLite' ? '' : `store: { url: "${(await postgresDatabase('empty')).url}" }\n`;
    const settings = `${store}platform: { kind: simulated }\nserver: { public_url: "https://rankd.example.com" }\n`;
    writeFileSync(home.path('rankd.yaml'), `${settings}discord: { api_base_url: "${apiBaseUrl}" }\n`);
    writeFileSync(home.path('bot.token'), `${discord.botToken}\n`, { mode: 0o600 });
    const setup = ['discord', 'setup', '--application', ids.application, '--public-key', discordPublicKey];
    const rest = ['--server', ids.server, '--row', `${ids.hr}=hr`, '--token-file', 'bot.token', '-y'];
    const missing = await home.here([...setup, ...rest.with(-2, 'no.token')]);
    expect([missing.code, missing.stderr]).toEqual([
      3,
      expect.stringMatching(/no\.token can't be read\.\ntry: name an existing file/),
    ]);
    expect(await home.json('key', 'list')).toMatchObject({ keys: [] });
    const done = await home.run([...setup, ...rest]);
    expect(done, done.stderr).toMatchObject({
      code: 0,
      stdout: discordSection(apiBaseUrl).replace(/commands: .*/, `commands:\n    - { role: "${ids.hr}", key: hr }`),
    });
    expect(done.stderr).toContain('https://rankd.example.com/discord/interactions');
    expect(done.stderr).toContain(`client_id=${ids.application}&scope=applications.commands&guild_id=${ids.server}`);
    expect(done.stdout + done.stderr).not.toContain(discord.botToken);
    expect(discord.commands?.map(({ name }) => name)).toEqual([
      ...['promote', 'demote', 'setrank', 'role', 'suspend', 'unsuspend', 'whois', 'undo', 'link'],
    ]);
    writeFileSync(home.path('rankd.yaml'), settings + done.stdout);
    await using daemon = await DaemonProcess.start(home);
    const url = `${daemon.url}/discord/interactions`;
    expect((await home.here(['status'])).stdout).toMatch(/^Discord +server \d+, no request since the start$/m);
    expect(await discord.runCommand(url, { name: 'promote', options: { user: 'Newcomer', reason: 'quiz' } })).toBe(
      'Newcomer (1001) is now Officer (rank 20), was Trainee (rank 10). (simulated group)',
    );
    expect((await home.here(['status'])).stdout).toMatch(/^Discord +server \d+, last request at 20\d\d-\S+Z$/m);
    await home.here(['discord', 'link', ids.ann, '1003']);
    await discord.runCommand(url, { name: 'demote', options: { user: '1001' } });
    const { stdout: shown } = await home.here(['history', 'list']);
    expect(shown).toMatch(/Annie .*Newcomer \(1001\).*discord\/hr/);
    expect(shown).toMatch(/Annie \(1003\).*discord\/hr/);
    const listed = await home.json<{ changes: object[] }>('history', 'list', '--by', `discord:${ids.ann}`);
    expect(listed.changes).toMatchObject([
      { via: 'discord', discordUserId: ids.ann, by: `discord:${ids.ann}`, rankerId: 1003 },
      { via: 'discord', discordUserId: ids.ann, who: 'Annie', keyName: 'hr', reason: 'quiz' },
    ]);
    expect((await home.json<{ changes: object[] }>('history', 'list', '--by', 'discord')).changes).toHaveLength(2);
    expect(
      (await home.json<{ changes: object[] }>('history', 'list', '--by', 'discord:4400000000000000099')).changes,
    ).toEqual([]);
    const audit = await home.json<{ events: object[] }>(
      'audit',
      'list',
      '--by',
      `discord:${ids.ann}`,
      '--action',
      'rank.applied',
    );
    expect(audit.events).toHaveLength(2);
    expect((await home.here(['doctor', '--offline'])).stdout).toMatch(
      /^ok +discord +server \d+, 1 role, last request at 20/m,
    );
    expect(
      (await home.here(['doctor', '--offline', '--url', daemon.url.replace('127.0.0.1', 'localhost')])).stdout,
    ).toMatch(/^ok +discord +\S+\/discord\/interactions reaches this daemon$/m);
    expect((await home.here(['forget', '1003', '-y'])).code).toBe(0);
    const forgotten = await home.json<{ changes: object[] }>('history', 'list');
    expect(JSON.stringify(forgotten)).not.toMatch(new RegExp(`${ids.ann}|Annie`));
    expect((await home.here(['audit', 'verify'])).code).toBe(0);
    await home.here(['key', 'revoke', 'hr', '-y']);
    expect((await home.here(['doctor', '--offline'])).stdout).toMatch(
      /^FAIL +discord +people with the Discord role \d+ can't change any rank: the key is revoked/m,
    );
    expect(daemon.log).not.toMatch(/secret_token|that-nobody-may-see/);
    expect(discord.violations).toEqual([]);
  },
);

test('on a terminal, discord setup asks for all values, creates the keys, never shows the token, and explains a 403', async () => {
  const { discord, apiBaseUrl } = await fakeDiscord();
  using home = new CliHome();
  writeFileSync(home.path('rankd.yaml'), `platform: { kind: simulated }\ndiscord: { api_base_url: "${apiBaseUrl}" }\n`);
  const about = [ids.application, '12', discordPublicKey, ids.server];
  const rows = [ids.hr, 'hr', ids.hr, ids.trainers, '', ''];
  discord.isInServer = false;
  const early = new TerminalIo(home, [...about, ...rows, 'short', discord.botToken, 'y', '']);
  expect(await runCli(['discord', 'setup'], early)).not.toBe(0);
  for (const text of ['64 hex digits', 'This role already has a row.', 'This is not a bot token', 'Missing Access'])
    expect(early.err).toContain(text);
  expect(early.err).toMatch(/^try: add the application to the server first, with the link/m);
  discord.isInServer = true;
  const io = new TerminalIo(home, [...about.filter((answer) => answer !== '12'), ids.hr, 'hr', '', discord.botToken]);
  expect(await runCli(['discord', 'setup'], io)).toBe(0);
  expect(io.out).toContain(`    - { role: "${ids.hr}", key: hr }\n`);
  expect(discord.commands).toHaveLength(9);
  expect(early.out + early.err + io.out + io.err).not.toContain(discord.botToken);
  const { keys } = await home.json<{ keys: object[] }>('key', 'list');
  expect(keys).toMatchObject([{ name: 'hr' }, { name: 'staff' }]);
});

test("discord setup refuses a game's key before it asks for the token", async () => {
  const { apiBaseUrl } = await fakeDiscord();
  using home = new CliHome();
  writeFileSync(home.path('rankd.yaml'), `platform: { kind: simulated }\ndiscord: { api_base_url: "${apiBaseUrl}" }\n`);
  await home.json('key', 'create', 'my-game');
  const io = new TerminalIo(home, [ids.application, discordPublicKey, ids.server, ids.hr, 'my-game', '']);
  expect(await runCli(['discord', 'setup'], io)).not.toBe(0);
  expect(io.err).toContain('The key "my-game" is for a game');
  expect(io.err).not.toContain('Bot token');
});

test('after a kill -9 between acknowledgement and reply, the change is reconciled, and a repeated command gets its outcome', async () => {
  const { discord, apiBaseUrl } = await fakeDiscord();
  await using system = await openCloudHome();
  appendFileSync(system.home.path('rankd.yaml'), discordSection(apiBaseUrl));
  await system.home.json('key', 'create', 'hr', '--for-discord');
  const first = await system.startDaemon();
  system.roblox.faults.add({ operation: 'assign', kind: 'hang', when: 'after' });
  const command = { name: 'setrank', options: { user: String(sampleUsers.trainee), rank: '20' } };
  const sent = await discord.interact(`${first.url}/discord/interactions`, command);
  await expect.poll(() => system.roblox.faults.usedCount).toBe(1);
  await first.stop('SIGKILL');
  expect(discord.replies).toEqual([]);
  const second = await system.startDaemon();
  await expect
    .poll(async () => (await system.latestChange()).state, { interval: 300, timeout: 20_000 })
    .toBe('applied');
  const again = await discord.post(`${second.url}/discord/interactions`, sent.body);
  expect(await discord.replyTo(again)).toContain('holds the new rank; confirmed after the fact');
  const { changes } = await system.home.json<{ changes: object[] }>('history', 'list');
  expect(changes).toHaveLength(1);
}, 60_000);
