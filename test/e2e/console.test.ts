import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { DaemonHere } from '../support/daemon-here.ts';
import { CliHome } from '../support/run-cli.ts';

const startFile = fileURLToPath(new URL('../../bin/panel.js', import.meta.url));

describe('a line on the console of `serve --console`', () => {
  const home = new CliHome();
  let daemon: DaemonHere;
  let outputStart = 0;
  beforeAll(async () => {
    daemon = await DaemonHere.start(home, { args: ['--console'] });
  });
  beforeEach(async () => {
    await daemon.console;
    outputStart = daemon.out.length;
  });
  afterAll(async () => {
    await daemon.stop();
    home[Symbol.dispose]();
  });
  const printed = () => daemon.out.slice(outputStart);
  const type = async (line: string, answer: RegExp) => {
    daemon.type(line);
    await expect.poll(printed).toMatch(answer);
  };

  test('runs as a command on the daemon’s data, with or without a leading rankd', async () => {
    await type('key create my-game', /rk_live_\w{36}\n(.*\n)*.*whitelist add/);
    const secret = /rk_live_\w+/.exec(printed())?.[0] ?? '';
    daemon.type('npx rankd whitelist add 1');
    await expect.poll(async () => (await daemon.verify(secret)).status).toBe(200);
    expect(printed()).not.toMatch(/try: (npx )?rankd/);
    expect(daemon.log).not.toContain(secret);
  });

  test('gets hints that fit the console', async () => {
    await type('key show nobody', /error: .*nobody.*\ntry: key list\n/);
  });

  test.each([
    ['kye create my-game', "error: Unknown command 'kye'.\ntry: key --help\n"],
    ['stauts', "error: Unknown command 'stauts'.\ntry: status\n"],
    ['stpo', "error: Unknown command 'stpo'.\ntry: stop\n"],
    ['exit', "error: Unknown command 'exit'.\ntry: stop\n"],
    ['/help me', "error: Unknown command '/help'.\ntry: help\n"],
  ])('that is not a command, such as %s, gets a hint with the most similar one', async (line, answer) => {
    daemon.type(line);
    await expect.poll(printed).toBe(answer);
  });

  test('may have quoted words', async () => {
    await type(`rank set 1001 20 --reason "passed the tryout"`, /20/);
    const { changes } = await home.json<{ changes: object[] }>('history', 'list', '--limit', '1');
    expect(changes).toMatchObject([{ reason: 'passed the tryout' }]);
  });

  test('answers a question of the previous command', async () => {
    await home.json('key', 'create', 'short');
    await type('key revoke short', /short.*\[y\/N\]\n/);
    await type('y', /revoked/);
  });

  test('is never read as a secret or a list, because the console shows it', async () => {
    await type('webhook add staff', /error: This console shows.*\ntry: put it into a file/);
    await type('whitelist add --file -', /error: This console shows(.*\n)*error: This console shows/);
  });

  test('ends a running --watch if it is empty', async () => {
    await type('status --watch', /listens/);
    daemon.type('');
    await type('version', /rankd \d/);
    expect(daemon.out).not.toContain('\u001b');
  });

  test('causes no audit events other than those of its command', async () => {
    const { events } = await home.json<{ events: Array<{ action: string }> }>('audit', 'list');
    await type('key list', /my-game/);
    expect(await home.json('audit', 'list')).toMatchObject({ events });
    const actions = new Set(events.map(({ action }) => action.split('.')[0]));
    expect([...actions].sort()).toEqual(['key', 'rank', 'whitelist']);
  });
});

test('stop ends the daemon, even while a command waits for an answer; later lines are ignored', async () => {
  using home = new CliHome();
  await home.json('key', 'create', 'my-game');
  await using daemon = await DaemonHere.start(home, { args: ['--console'] });
  await daemon.console;
  daemon.type('key revoke my-game');
  daemon.type('workspace suspend -y'); // runs only after the previous command has ended
  await expect.poll(() => daemon.out).toContain('[y/N]');
  daemon.type('stop');
  daemon.type('y');
  daemon.type('key create too-late');
  expect(await daemon.ended).toBe(0);
  expect(daemon.log).toMatch(/stopping once .* signal=stop\n.* stopped\n/);
  expect(await home.json('key', 'list')).toMatchObject({ keys: [{ name: 'my-game', state: 'active' }] });
  expect(await home.json('workspace', 'show')).toMatchObject({ workspace: { active: true } });
});

describe('bin/panel.js', () => {
  test('has a complete rankd.yaml in docs/hosting.md', async () => {
    using home = new CliHome();
    const page = readFileSync(new URL('../../docs/hosting.md', import.meta.url), 'utf8');
    const [, recipe = ''] = page.split('## A bot panel');
    const [, yaml = ''] = /```yaml\n(.+?)```/s.exec(recipe) ?? [];
    writeFileSync(home.path('rankd.yaml'), yaml.replaceAll(/^ {3}/gm, ''));
    writeFileSync(home.path('roblox.key'), 'key', { mode: 0o600 });
    expect(await home.here(['config', 'check'])).toMatchObject({ code: 0 });
  });

  test('serves on SERVER_PORT, accepts commands, continues after the end of its input, and logs no secret', async () => {
    using home = new CliHome();
    using panel = startPanel(home, { SERVER_PORT: '0' });
    await panel.waitFor(/rankd listens on http:\/\/0\.0\.0\.0:\d+ /);
    panel.child.stdin.write('key create my-game\n');
    const [secret = ''] = await panel.waitFor(/rk_live_\w{36}/);
    panel.child.stdin.end('status\n');
    const [, url = ''] = await panel.waitFor(/running(?:.*\n)*.*(http:\/\/\S+:\d+)/);
    expect((await fetch(`${url.replace('0.0.0.0', '127.0.0.1')}/readyz`)).status).toBe(200);
    panel.child.kill();
    expect(await once(panel.child, 'exit')).toEqual([0, null]);
    expect(panel.log()).toContain('stopped');
    expect(panel.log()).not.toContain(secret);
  });

  test('names the variable and the file if it cannot start, but no command, because there is no shell', async () => {
    const server = createServer().listen(0);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const starts = [{ SERVER_PORT: 'x1' }, { PORT: 'x1' }, { SERVER_PORT: String(port) }];
    const errors = await Promise.all(starts.map(failedStart));
    server.close();
    const wrong = 'is "x1"; expected a whole number from 0 to 65535\ntry: correct this, then try again\n';
    expect(errors).toEqual([
      `error: SERVER_PORT: ${wrong}`,
      `error: PORT: ${wrong}`,
      `error: Another program is already listening on 0.0.0.0:${port} (SERVER_PORT).\ntry: stop it, or choose a different port: set server.port\n`,
    ]);
  });

  test('stops on the line `stop`', async () => {
    using home = new CliHome();
    using panel = startPanel(home, { SERVER_PORT: '0' });
    await panel.waitFor(/Type stop to stop rankd\./);
    panel.child.stdin.write('stop\n');
    expect(await once(panel.child, 'exit')).toEqual([0, null]);
  });
});

async function failedStart(env: Record<string, string>): Promise<string> {
  using home = new CliHome();
  using panel = startPanel(home, env);
  await once(panel.child, 'exit');
  return panel.log();
}

function startPanel(home: CliHome, env: Record<string, string>) {
  const file = home.path('log');
  writeFileSync(file, '');
  const log = openSync(file, 'a');
  const child = spawn(process.execPath, [startFile], {
    cwd: home.cwd,
    env: { ...home.env, ...env },
    stdio: ['pipe', 'pipe', log],
  }) as ChildProcessByStdio<Writable, Readable, null>;
  closeSync(log);
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  return {
    child,
    log: () => readFileSync(file, 'utf8'),
    async waitFor(expected: RegExp): Promise<RegExpExecArray> {
      await expect.poll(() => out).toMatch(expected);
      return expected.exec(out) as RegExpExecArray;
    },
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  };
}
