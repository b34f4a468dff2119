import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systems, thisSystem } from '../../src/base/system.ts';
import { runCli } from '../../src/cli/program.ts';
import { TerminalIo } from '../support/command-io.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { sampleUsers } from '../support/fake-open-cloud/index.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { runOnTerminal } from '../support/pseudo-terminal.ts';
import { CliHome } from '../support/run-cli.ts';
import { send } from '../support/send.ts';

const binary = fileURLToPath(new URL('../../bin/rankd.js', import.meta.url));

let home: CliHome;
beforeEach(() => {
  home = new CliHome();
});
afterEach(() => home[Symbol.dispose]());

describe('the first run', () => {
  test('without a terminal, no secret is shown and no key is created', async () => {
    await using daemon = await DaemonProcess.start(home);
    expect(daemon.log).not.toContain('rk_live_');
    expect(await home.json('key', 'list')).toMatchObject({ keys: [] });
  });

  test('on a terminal, one demo key is created, and the printed curl commands work unchanged', async () => {
    const first = await serveOnTerminal(home, async (output) => {
      for (const [, url = '', header = '', body = ''] of output.matchAll(
        /curl -sw '\\n' '(.+?)' -H '(.+?)' -d '(.+?)'/g,
      )) {
        const [name = '', value = ''] = header.split(': ');
        expect((await fetch(url, { method: 'POST', headers: { [name]: value }, body })).status).toBe(200);
      }
    });
    expect(first).toMatch(/SIMULATED GROUP: .*To rank in a real group: rankd init/);
    expect(first).toMatch(/ POST \/v1\/ranker 200 \d+ ms demo: 1001 Trainee → Officer {2}/);
    expect(first.match(/rk_live_\w{36}/g)).toHaveLength(3);
    expect((await home.here(['rank', 'show', '1001'])).stdout).toContain('Officer');
    const second = await serveOnTerminal(home, async () => undefined, ['--simulate']);
    expect(second).not.toContain('rk_live_');
    expect(second).toMatch(/SIMULATED GROUP: .*start rankd without --simulate/);
  });
});

test('the first run on Windows prints commands for PowerShell', async () => {
  const visit = async (output: string) => {
    const commands = [...output.matchAll(/"(.+)" \| curl\.exe -s "(\S+)" -H "Authorization: (.+?)" -d "@-"/g)];
    expect(commands).toHaveLength(2);
    for (const [, piped = '', url = '', authorization = ''] of commands) {
      const body = piped.replaceAll(/`(.)/g, '$1');
      expect((await fetch(url, { method: 'POST', headers: { authorization }, body })).status).toBe(200);
    }
    expect(output).not.toMatch(/curl |'|&&/);
  };
  await serveOnTerminal(home, visit, [], systems.windows);
});

describe('serve', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('drains and exits with 0 on %s', async (signal) => {
    await using daemon = await DaemonProcess.start(home);
    expect(await daemon.stop(signal)).toBe(0);
    expect(daemon.log).toContain('stopped');
  });

  test.each([
    ['0.0.0.0', /^http:\/\/0\.0\.0\.0:\d+$/],
    ['::', /^http:\/\/\[::\]:\d+$/],
  ])('prints its address on %s, and warns about plain HTTP', async (host, address) => {
    await using daemon = await DaemonHere.start(home, { args: ['--host', host] });
    expect(daemon.url).toMatch(address);
    const { status } = await home.json<{ status: { url: string; problems: Array<{ message: string }> } }>('status');
    expect(status).toMatchObject({ url: daemon.url, problems: [{ message: expect.stringMatching(plainHttp) }] });
    expect(daemon.log).toMatch(plainHttp);
    expect(daemon.log).toContain(daemon.url);
  });

  test.each([
    ['https', '127.0.0.0/8', 0],
    ['http', '127.0.0.0/8', 1],
    ['https', '10.0.0.0/8', 1],
  ])(
    'after a request with X-Forwarded-Proto: %s, with %s as trusted proxies, reports %i problems with plain HTTP',
    async (proto, trusted, count) => {
      const env = { RANKD_SERVER_TRUSTED_PROXIES: trusted };
      await using daemon = await DaemonHere.start(home, { args: ['--host', '0.0.0.0'], env });
      const { port } = new URL(daemon.url);
      await send(`http://127.0.0.1:${port}/healthz`, { headers: { 'x-forwarded-proto': proto } });
      const { status } = await home.json<{ status: { problems: unknown[] } }>('status');
      expect(status.problems).toHaveLength(count);
    },
  );

  test('behind a proxy that server.public_url names, does not warn about plain HTTP', async () => {
    const env = { RANKD_SERVER_PUBLIC_URL: 'https://rankd.example.com' };
    await using daemon = await DaemonHere.start(home, { args: ['--host', '0.0.0.0'], env });
    expect(daemon.log).not.toMatch(plainHttp);
  });

  test('prints commands in its log and in status that begin with the command that started rankd', async () => {
    await using system = await openCloudHome();
    await system.home.here(['key', 'create', 'trial'], { env: { RANKD_PLATFORM_KIND: 'simulated' } });
    const typedAs = '"C:\\Program Files\\node.exe" rankd.js';
    await using daemon = await DaemonHere.start(system.home, { typedAs });
    const command = `${typedAs} key adopt NAME`;
    const logged = () => daemon.log.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line).msg] : []));
    await expect.poll(() => logged().join('\n')).toContain(command);
    const { stdout } = await system.home.here(['status'], { typedAs });
    expect(stdout).toContain(command);
    expect(stdout).not.toMatch(/ rankd key/);
  });

  test.each(['127.0.0.1', '127.0.0.2', '::1', 'localhost'])(
    'on %s, which only this machine reaches, prints no warning',
    async (host) => {
      await using daemon = await DaemonHere.start(home, { args: ['--host', host] });
      expect(daemon.log).toBe('');
    },
  );

  test('on an address that this machine cannot listen on, reports that in one sentence, with the setting', async () => {
    const { code, stderr } = await home.here(['serve', '--host', 'fe80::1', '--port', '0']);
    expect({ code, stderr }).toEqual({
      code: 78,
      stderr: expect.stringMatching(/^error: .*fe80::1.*\.\ntry: .*server\.host/),
    });
    expect(stderr).not.toContain('went wrong inside');
  });

  test('on localhost, listens on only one address, where all limits apply', async () => {
    await using daemon = await DaemonHere.start(home, { args: ['--host', 'localhost'] });
    expect(new URL(daemon.url).hostname).toBe('127.0.0.1');
    await expect(fetch(`http://[::1]:${new URL(daemon.url).port}/healthz`)).rejects.toThrow();
  });

  test('exits with 4 if a daemon is running on the same data directory', async () => {
    await using _first = await DaemonProcess.start(home);
    const second = await home.run(['serve', '--port', '0']);
    expect(second.code).toBe(4);
    expect(second.stderr).toMatch(/^error: .+\ntry: .+\n$/);
  });

  test('can use the data directory of a daemon that was ended by SIGKILL', async () => {
    await using first = await DaemonProcess.start(home);
    await first.stop('SIGKILL');
    await using second = await DaemonProcess.start(home);
    expect((await fetch(`${second.url}/readyz`)).status).toBe(200);
  });

  test('stops with the npx that started it, although npm does not forward the signal', async () => {
    const env = { ...home.env, npm_command: 'exec' };
    const shell = spawn('sh', ['-c', `'${process.execPath}' '${binary}' serve --port 0; true`], { cwd: home.cwd, env });
    const log = text(shell.stderr); // resolves once the last writer has exited
    await once(shell.stdout, 'data');
    shell.kill('SIGTERM');
    expect(await log).toContain('"stopped"');
  });

  test('exits with 69 if the port is taken, and explains how to use a different one', async () => {
    await using first = await DaemonHere.start(home);
    const { port } = new URL(first.url);
    const result = await home.run(['serve', '--port', port], { dataDir: home.path('other') });
    expect(result.code).toBe(69);
    expect(result.stderr).toContain(`127.0.0.1:${port}`);
    expect(result.stderr).toContain('try: stop it, or choose a different port');
  });

  test('exits with 78 and the name of an invalid setting, or with 2 and the name of an invalid flag', async () => {
    const setting = await home.here(['serve'], { env: { RANKD_SERVER_PORT: 'eighty' } });
    expect(setting).toMatchObject({ code: 78, stderr: expect.stringContaining('RANKD_SERVER_PORT') });
    const flag = await home.here(['serve', '--port', 'eighty']);
    expect(flag).toMatchObject({ code: 2, stderr: expect.stringContaining('--port') });
  });
});

test('a daemon logs once its group, its acting account and its number of keys, or why the account cannot change ranks', async () => {
  await using world = await openCloudHome();
  await world.home.createKey('second');
  const messages = (log: string) =>
    log.split('\n').flatMap((line) => (line.includes('"msg"') ? [JSON.parse(line).msg as string] : []));
  const daemon = await world.serve();
  await expect
    .poll(() => messages(daemon.log))
    .toEqual(['ranks in Sample Fellowship (700) as user RankBot (9001); 2 game keys']);
  await daemon.stop();
  world.roblox.group.removeMember(sampleUsers.actor);
  const outside = await world.serve();
  await expect.poll(() => messages(outside.log)).toEqual(["can't rank yet"]);
  expect(outside.log).toMatch(
    /The acting account \(user 9001\) is not a member of the group.*"hint":"join the group as user 9001/,
  );
});

test('a mistyped group id causes one log line with the problem and the fix, without a stack', async () => {
  await using world = await openCloudHome();
  const yaml = readFileSync(world.home.path('rankd.yaml'), 'utf8');
  writeFileSync(world.home.path('rankd.yaml'), yaml.replace(/id: \d+/, 'id: 701'));
  const daemon = await world.serve();
  const lines = () =>
    daemon.log.split('\n').filter((line) => line.startsWith('{"level":"warn"') || line.includes('"error"'));
  await expect.poll(lines).toHaveLength(1);
  await daemon.stop();
  const [line = ''] = lines();
  expect(JSON.parse(line)).toMatchObject({
    msg: "can't rank yet",
    err: {
      message: expect.stringMatching(/^Roblox has no such group \(404/),
      hint: expect.stringContaining('set group.id to the number in the address'),
    },
  });
  expect(daemon.log).not.toMatch(/\bat .*:\d+:\d+|RankdError/);

  const { screen } = await runOnTerminal(world.home, ['serve'], {
    env: { TZ: 'Asia/Tokyo', NO_COLOR: '1' },
    answers: [["can't rank yet", '\x03']],
  });
  const hour = new Date(Date.now() + 9 * 3_600_000).toISOString().slice(11, 13);
  expect(screen).toMatch(
    new RegExp(`^${hour}:\\d\\d:\\d\\d warn  can't rank yet: Roblox has .*  try: set group.id`, 'm'),
  );
});

const plainHttp = /other machines can reach rankd over plain HTTP.*put a reverse proxy with TLS in front/;

/** Runs `serve` in this process, on a simulated terminal, until `visit` resolves. */
async function serveOnTerminal(
  home: CliHome,
  visit: (output: string) => Promise<void>,
  options: string[] = [],
  system = thisSystem,
): Promise<string> {
  const io = new TerminalIo(home, [], system);
  const output = () => io.out + io.err;
  const exited = runCli(['serve', '--port', '0', ...options], io);
  await expect.poll(output).toMatch(/rankd key list|history list/);
  await visit(output());
  io.stop();
  expect(await exited).toBe(0);
  return output();
}
