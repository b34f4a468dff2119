import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { DaemonHere } from '../support/daemon-here.ts';
import { CliHome } from '../support/run-cli.ts';

const tool = fileURLToPath(new URL('../tools/fake-discord.ts', import.meta.url));

/** Runs `npm run fake-discord` until the test ends. `shown` is its output so far. */
function startFake(): { shown: string } {
  const child = spawn(process.execPath, [tool, '--port', '0']);
  onTestFinished(async () => {
    const ended = once(child, 'exit');
    child.kill('SIGINT');
    await ended;
  });
  const fake = { shown: '' };
  child.stdout.on('data', (chunk) => {
    fake.shown += chunk;
  });
  return fake;
}

test('npm run fake-discord prints how to connect rankd to a channel and a program, which print the messages they receive', async () => {
  using home = new CliHome();
  const fake = startFake();
  const lines = () => [...fake.shown.matchAll(/^echo (\S+) \| rankd (webhook add .*)$/gm)];
  await expect.poll(() => lines().length).toBe(2);
  const [setting = ''] = /^webhooks: .*$/m.exec(fake.shown) ?? [];
  writeFileSync(home.path('rankd.yaml'), `platform: { kind: simulated }\n${setting}\n`);
  for (const [, address = '', command = ''] of lines()) {
    const added = await home.here(command.split(' '), { input: address });
    expect(added, added.stderr).toMatchObject({ code: 0 });
  }
  await using _daemon = await DaemonHere.start(home);
  await home.json('rank', 'set', '1001', '20');
  await expect.poll(() => fake.shown).toMatch(/^program: \{"type":"rank\.changed"/m);
  await expect.poll(() => fake.shown).toMatch(/^discord: .* promoted$/m);
  expect(fake.shown).not.toContain('VIOLATION');
});

test('a slash command sent with npm run fake-discord gets the reply that a person on Discord would see', async () => {
  using home = new CliHome();
  const fake = startFake();
  await expect.poll(() => fake.shown).toMatch(/--command promote/);
  const [setting = ''] = /^discord: .*$/m.exec(fake.shown) ?? [];
  const [, token = ''] = /^echo (\S+) > bot\.token$/m.exec(fake.shown) ?? [];
  const [, setup = ''] = /^rankd (discord setup .*)$/m.exec(fake.shown) ?? [];
  writeFileSync(home.path('rankd.yaml'), `platform: { kind: simulated }\n${setting}\n`);
  writeFileSync(home.path('bot.token'), token, { mode: 0o600 });
  const done = await home.here(setup.split(' '));
  expect(done, done.stderr).toMatchObject({ code: 0 });
  writeFileSync(home.path('rankd.yaml'), `platform: { kind: simulated }\n${done.stdout}`);
  await using daemon = await DaemonHere.start(home);
  const port = /127\.0\.0\.1:(\d+)\/api\/v10/.exec(setting)?.[1] ?? '';
  const typed = ['--port', port, '--to', `${daemon.url}/discord/interactions`, '--command', 'promote'];
  const postedCommand = spawn(process.execPath, [tool, ...typed, '--user', 'Newcomer']);
  expect(await text(postedCommand.stdout)).toMatch(
    /^Newcomer \(1001\) is now Officer \(rank 20\), was Trainee \(rank 10\)\. \(simulated group\)\n$/,
  );
  expect(fake.shown).not.toContain('VIOLATION');
});

test.each([
  ['fake-discord.ts', 65_534],
  ['fake-roblox.ts', 65_532],
])('%s on a taken port ends with one sentence', async (name, highest) => {
  const other = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const line = [fileURLToPath(new URL(`../tools/${name}`, import.meta.url)), '--port', `${Math.min(port, highest)}`];
  const { status, stderr } = spawnSync(process.execPath, line, { encoding: 'utf8' });
  expect(stderr).toBe(
    `Another program is already listening on port ${port}; choose another one with -- --port PORT.\n`,
  );
  expect(status).toBe(1);
});
