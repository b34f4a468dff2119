import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runCli as runProgram } from '../../src/cli/program.ts';
import { TerminalIo } from '../support/command-io.ts';
import { binary, CliHome, type CliResult, runCli } from '../support/run-cli.ts';

test.concurrent.each([
  [['key'], 'rankd key'],
  [['--data-dir', 'elsewhere', 'key'], 'rankd key'],
  [['-c', 'other.yaml', 'whitelist', '-q'], 'rankd whitelist'],
  [['key', 'create'], 'rankd key create'],
  [['--json', 'key', 'create', 'a', 'b'], 'rankd key create'],
  [['rank', 'set', 'some body', '20'], 'rankd rank set'],
  [['history', 'list', '--limit', '0'], 'rankd history list'],
  [['history', '--nonsense-option'], 'rankd history'],
])('for the usage error %j, the second line names the help of its command', async (args, command) => {
  const { code, stdout, stderr } = await runHere(args);
  expect(code).toBe(2);
  expect(stdout).toBe('');
  const help = `${command} --help`;
  if (args.includes('--json')) expect(JSON.parse(stderr)).toMatchObject({ code: 'usage', try: help });
  else expect(stderr).toMatch(new RegExp(`^error: .+\\.\ntry: ${help}\n$`));
});

test.concurrent('rankd without arguments prints how to begin, and exits with 0', async () => {
  const { code, stdout, stderr } = await runCli([]);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/rankd init .*rankd doctor .*rankd --help\n$/s);
  expect(stdout.split('\n').length).toBeLessThan(15);
});

test.concurrent.each([
  [['rank', 'set', '1', '2', '--resaon', 'x'], 'rankd rank set --reason'],
  [['rank', 'set', '1', '2', '--because', 'x'], 'rankd rank set --help'],
  [['rank', 'set', '1', '2', '--vision'], 'rankd rank set --help'], // commander would suggest --version
  [['stauts'], 'rankd status'],
])('%j suggests only similar words', async (args, suggestion) => {
  expect(await runHere(args)).toMatchObject({ code: 2, stderr: expect.stringMatching(`\ntry: ${suggestion}\n$`) });
});

test.concurrent('a typo is reported in plain words', async () => {
  using home = new CliHome();
  const refusals = await Promise.all(
    [
      ['whitelist', 'add', 'lobby'],
      ['history', 'list', '--limit', 'few'],
      ['rank', 'set', '1001', '256'],
    ].map((line) => home.here(line)),
  );
  expect(refusals.map(({ stderr }) => /^error: .*/m.exec(stderr)?.[0])).toEqual([
    expect.stringMatching(/^error: The place can't be 'lobby'\. It must be a place id/),
    expect.stringMatching(/^error: `--limit` can't be 'few'\. It must be a whole number/),
    expect.stringMatching(/^error: The group has no role with the id 256; ranks end at 255\. Choose/),
  ]);
});

test.concurrent('an error does not repeat an API key in the wrong argument or file', async () => {
  using home = new CliHome();
  const { secret } = await home.json<{ secret: string }>('key', 'create', 'game');
  writeFileSync(home.path('game.key'), `${secret}\n`);
  const lines = [
    ['key', 'revoke', secret],
    ['key', 'show', secret],
    [secret],
    ['whitelist', 'add', secret],
    ['whitelist', 'add', '--file', 'game.key'],
  ];
  for (const args of [...lines, ['key', 'show', secret, '--json']]) {
    const { code, stdout, stderr } = await home.here(args);
    expect(code).toBeGreaterThan(0);
    expect(stdout + stderr).toContain('rk_live_…');
    expect(stdout + stderr).not.toContain(secret.slice(8, 20));
  }
});

test.concurrent('-v prints the cause of an error, or adds it to the document with --json', async () => {
  using home = new CliHome();
  chmodSync(home.cwd, 0o700);
  writeFileSync(home.path('rankd.db'), 'no database'.repeat(100));
  const options = { dataDir: home.cwd };
  expect((await home.run(['key', 'list', '-v'], options)).stderr).toMatch(
    /^error: .+\ntry: .+\nSqliteError: .+\n +at /,
  );
  const asJson = await home.run(['key', 'list', '-v', '--json'], options);
  expect(asJson.json()).toMatchObject({
    code: 'config_invalid',
    cause: expect.stringMatching(/^SqliteError: .+\n +at /),
  });
  expect((await home.run(['key', 'list', '--json'], options)).json()).not.toHaveProperty('cause');
});

test.concurrent('-v prints the whole chain of causes', async () => {
  using home = new CliHome();
  const env = {
    RANKD_GROUP_ID: '700',
    RANKD_PLATFORM_API_KEY: 'a-key',
    RANKD_PLATFORM_BASE_URL: 'https://rankd.invalid',
  };
  const { stderr } = await home.here(['group', 'show', '-v'], { env });
  expect(stderr).toMatch(
    /^TypeError: fetch failed\n[\s\S]*^caused by: Error: getaddrinfo (ENOTFOUND|EAI_AGAIN) rankd\.invalid/m,
  );
});

test.concurrent('a duration that is too long is a usage error, and no key is created', async () => {
  using home = new CliHome();
  const { code, stderr } = await home.here(['key', 'create', 'game', '--expires', '99999999d']);
  expect(code).toBe(2);
  expect(stderr).toContain('at most 36500d');
  expect(await home.json('key', 'list')).toMatchObject({ keys: [] });
});

describe.concurrent('in a folder that was removed', () => {
  const message = 'The folder that rankd was started in no longer exists.';
  const hint = 'cd to a folder that exists, then run the command again';

  test.each(['--data-dir data key list', 'backup copy.db', 'serve', 'init --group 1', 'config check'])(
    '%s reports that',
    async (line) => {
      expect(await inRemovedFolder(line)).toEqual({ code: 3, stdout: '', stderr: `error: ${message}\ntry: ${hint}\n` });
      const { code, stdout, stderr } = await inRemovedFolder(`${line} --json`);
      expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
      expect(JSON.parse(stderr)).toMatchObject({ success: false, code: 'not_found', message, try: hint });
    },
  );

  test.each(['--version', '--help', 'key create --help', 'completion bash'])('%s still works', async (line) => {
    expect(await inRemovedFolder(line)).toMatchObject({ code: 0, stdout: expect.stringMatching(/./), stderr: '' });
  });
});

describe.concurrent('printed commands start rankd the way it was started, so they never run an unrelated package named rankd', () => {
  const npx = { npm_command: 'exec' };

  test.concurrent.for([
    ['a global installation', 'elsewhere/bin/rankd', {}, 'rankd'],
    ['the file in the folder of a clone', 'work/bin/rankd.js', {}, 'node bin/rankd.js'],
    ['the file in another folder', 'my clone/bin/rankd.js', {}, "node 'HOME/my clone/bin/rankd.js'"],
    ['the link of a project that depends on it', 'work/node_modules/.bin/rankd', {}, './node_modules/.bin/rankd'],
    ['npx, in a project that depends on it', 'work/node_modules/.bin/rankd', npx, 'npx rankd'],
    ['npx, in a clone', 'work/bin/rankd.js', npx, 'npx rankd'],
    ['npx, although it is installed globally', 'elsewhere/bin/rankd', npx, 'rankd'],
  ] as const)('%s', async ([, path, env, typed], { expect }) => {
    using home = new CliHome();
    const script = `${home.folder}/${path}`;
    mkdirSync(dirname(script), { recursive: true });
    symlinkSync(binary, script);
    const { stderr } = await home.run(['key', 'show', 'nobody'], { script, env });
    expect(stderr).toContain(`try: ${typed.replace('HOME', home.folder)} key list\n`);
  });
});

describe.concurrent('started by npx, without rankd on the path', () => {
  const options = { typedAs: 'npx rankd' }; // the name that the test above expects for npx in a clone

  test.each([
    [['key', 'create', 'game'], 'try: npx rankd whitelist add PLACE --key game'],
    [['key', 'show', 'nobody'], 'try: npx rankd key list'],
    [['key', 'show', 'nobody', '--json'], '"try":"npx rankd key list"'],
    [['rank', 'test', '1001', '21'], 'try: npx rankd group roles'],
    [['doctor', '--offline'], 'try: npx rankd init'],
    [['key', '--help'], '\n  npx rankd key create my-game'],
    [['key', '--help'], 'Usage: npx rankd key '],
    [['--help'], 'Usage: npx rankd ['],
  ])('%j: the printed commands work unchanged', async (args, expected) => {
    using home = new CliHome();
    const { stdout, stderr } = await home.here(args, options);
    expect(stdout + stderr).toContain(expected);
    expect(stdout + stderr).not.toContain('npx npx');
  });

  test('the results are unchanged', async () => {
    using home = new CliHome();
    await home.here(['rank', 'set', '1001', '20']);
    const [plain, throughNpx] = await Promise.all([
      home.here(['history', 'list', '--json']),
      home.here(['history', 'list', '--json'], options),
    ]);
    expect(throughNpx.stdout).toBe(plain.stdout);
  });
});

async function runHere(args: string[]): Promise<CliResult> {
  using home = new CliHome();
  return await home.here(args);
}

async function inRemovedFolder(line: string): Promise<Omit<CliResult, 'json'>> {
  using home = new CliHome();
  return await home.shell(`rmdir "$PWD" && exec '${process.execPath}' '${binary}' ${line}`);
}

test('a double click on Windows, in a new window, offers init first and serve later, and prints help after a no', async () => {
  using home = new CliHome();
  const screenAfter = async (...answers: string[]) => {
    const io = new TerminalIo(home, answers);
    await runProgram(['__window'], io);
    return io.err + io.out;
  };
  expect(await screenAfter('n')).toMatch(/^rankd is not set up here yet\. .+\[Y\/n\] rankd changes members' ranks/);
  expect(await screenAfter('', '4199740', 'no key')).toMatch(/\[Y\/n\] Group id .*Roblox key/s);
  writeFileSync(home.path('rankd.yaml'), 'server: { port: none }\n');
  expect(await screenAfter('')).toMatch(/^Start rankd now, in this window\? \[Y\/n\] error: .*server\.port/s);
  expect((await home.here(['__window'])).stdout).toMatch(/^rankd changes members' ranks/);
});
