import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCli } from '../../src/cli/program.ts';
import { TerminalIo } from '../support/command-io.ts';
import { CliHome } from '../support/run-cli.ts';

const binary = fileURLToPath(new URL('../../bin/rankd.js', import.meta.url));

let home: CliHome;
let path: string;

beforeAll(async () => {
  home = new CliHome();
  path = `${home.folder}/bin:${process.env['PATH']}`;
  mkdirSync(`${home.folder}/bin`);
  writeFileSync(`${home.folder}/bin/rankd`, `#!/bin/sh\nexec '${process.execPath}' '${binary}' "$@"\n`);
  chmodSync(`${home.folder}/bin/rankd`, 0o755);
  await home.json('key', 'create', 'lobby');
  await home.json('key', 'create', 'lounge', '--test');
  await home.json('key', 'create', 'gone');
  await home.json('whitelist', 'add', '77', '--key', 'gone');
  await home.json('whitelist', 'add', '88', '--key', 'lounge');
  await home.json('key', 'revoke', 'gone', '-y');
  await home.json('whitelist', 'add', '920587237', '920587238', '4242', '--key', 'lobby');
  writeFileSync(home.path('list.txt'), '');
  mkdirSync(home.path('list.d'));
});

afterAll(() => home[Symbol.dispose]());

/** Returns the candidates that `rankd __complete` prints for the last word, which is incomplete. */
async function candidates(...words: string[]): Promise<string[]> {
  const io = new TerminalIo(home);
  expect(await runCli(['__complete', ...words.slice(0, -1), `:${words.at(-1)}`], io)).toBe(0);
  expect(io.err).toBe('');
  return io.out.split('\n').flatMap((line) => (line === '' ? [] : [line.split('\t')[0] ?? '']));
}

describe('rankd __complete', () => {
  test.each<[string[], string[]]>([
    [['wh'], ['whitelist']],
    [['help', 'wh'], ['whitelist']],
    [
      ['workspace', ''],
      ['show', 'suspend', 'resume', 'plan'],
    ],
    [
      ['workspace', 'plan', ''],
      ['top', 'free'],
    ],
    [['key', 'create', '--sc'], ['--scope']],
    [
      ['key', 'create', '--scope', ''],
      ['verify', 'rank', 'suspend', 'roles'],
    ],
    [
      ['key', 'create', '--scope', 'verify', 'r'],
      ['rank', 'roles'],
    ],
    [['key', 'create', '--scope', 'verify', '--te'], ['--test']],
    [['key', 'create', ''], []],
    [['--json', 'key', 'sho'], ['show']],
    [['key', 'list', '--js'], ['--json']],
    [['key', 'list', '--', '--js'], []],
    [
      ['key', 'show', 'lo'],
      ['lobby', 'lounge'],
    ],
    [['key', 'show', 'lobby', ''], []],
    [['history', 'list', '--key', 'lou'], ['lounge']],
    [['history', 'list', '--key=lou'], ['--key=lounge']],
    [['history', 'list', '--key', '=', 'lou'], ['lounge']],
    [
      ['history', 'list', '--key', '='],
      ['lobby', 'lounge'],
    ],
    [
      ['whitelist', 'remove', '92'],
      ['920587237', '920587238'],
    ],
    [['whitelist', 'remove', '4242', '9205872372'], []],
    [['whitelist', 'remove', '7'], []], // the place belongs to a revoked key
    [['whitelist', 'remove', '--key', 'lounge', ''], ['88']],
    [['whitelist', 'remove', '--key=lounge', ''], ['88']],
    [['whitelist', 'remove', "9' OR 1"], []],
    [['rank', 'test', '1001', '20', '--place', '4'], ['4242']],
    [['whitelist', 'add', '--file', ''], [':file']],
    [['-c', ''], [':file']],
    [['--data-dir', ''], [':directory']],
    [['--data-dir', '/nowhere', 'key', 'show', ''], []],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish', 'powershell'],
    ],
    [
      ['game', 'write', 'Adonis', 'C'],
      ['Cmdr', 'Chat'],
    ],
    [['init', '--system', 'HD'], ['HDAdmin']],
    [['config', 'get', 'server.po'], ['server.port']],
    [['nonsense', ''], []],
  ])('completes rankd %j to %j', async (words, expected) => {
    expect(await candidates(...words)).toEqual(expected);
  });

  test('offers every command with its description', async () => {
    const { stdout } = await home.run(['__complete', ':']);
    expect(stdout).toMatch(/^serve\trun the daemon/m);
    expect(stdout).not.toContain('__complete');
  });

  test('neither fails nor changes anything if the database is missing or invalid', async () => {
    const other = home.path('other');
    expect((await home.run(['__complete', 'key', 'show', ':'], { dataDir: other })).stdout).toBe('');
    expect(readdirSync(home.cwd)).not.toContain('other');
    mkdirSync(other);
    writeFileSync(`${other}/rankd.db`, 'no database');
    expect(await home.run(['__complete', 'key', 'show', ':'], { dataDir: other })).toMatchObject({
      code: 0,
      stdout: '',
      stderr: '',
    });
    expect(readFileSync(`${other}/rankd.db`, 'utf8')).toBe('no database');
  });
});

function shell(command: string[], script: string): string[] {
  const [program = '', ...args] = command;
  const env = { PATH: path, HOME: home.folder, RANKD_DATA_DIR: home.dataDir, LANG: 'C.UTF-8' };
  const { stdout, stderr, status } = spawnSync(program, [...args, script], { cwd: home.cwd, env, encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
  return stdout.split('\n').filter((line) => line !== '');
}

const has = (program: string) => spawnSync(program, ['--version']).status === 0;

describe('bash', () => {
  test.each<[string[], string[]]>([
    [['key', 'sh'], ['show']],
    [
      ['key', 'show', ''],
      ['lobby', 'lounge'],
    ],
    [['history', 'list', '--key', '=', 'lob'], ['lobby']],
    [
      ['whitelist', 'add', '--file', 'list'],
      ['list.d', 'list.txt'],
    ],
    [['--data-dir', 'list'], ['list.d']],
    [['nonsense', ''], []],
  ])('completes rankd %j to %j', (words, expected) => {
    const typed = ['rankd', ...words].map((word) => `'${word}'`).join(' ');
    const script = `source <(rankd completion bash); [[ $(complete -p rankd) == 'complete -F _rankd rankd' ]] || exit 9
COMP_WORDS=(${typed}) COMP_CWORD=${words.length}; _rankd rankd; printf '%s\\n' "\${COMPREPLY[@]}"`;
    expect(shell(['bash', '--norc', '-uc'], script).toSorted()).toEqual(expected);
  });
});

function describeIfInstalled(name: string): (title: string, tests: () => void) => void {
  return has(name) ? describe : () => undefined;
}

describeIfInstalled('zsh')('zsh', () => {
  test.each<[string[], string[]]>([
    [['key', 'sh'], ["show:a key's settings, limits and secrets, masked"]],
    [
      ['key', 'show', ''],
      ['lobby:live key', 'lounge:test key'],
    ],
    [['whitelist', 'add', '--file', 'list'], ['files']],
    [['--data-dir', 'list'], ['files -/']],
    [['nonsense', ''], []],
  ])('completes rankd %j to %j', (words, expected) => {
    const typed = ['rankd', ...words].map((word) => `'${word}'`).join(' ');
    const script = `compdef() { :; }; _describe() { print -rl -- "\${(@P)2}"; }; _files() { print -r -- "files $*"; }
source <(rankd completion zsh); words=(${typed}) CURRENT=${words.length + 1}; _rankd || true`;
    const lines = shell(['zsh', '-fc'], script).map((line) => line.trim());
    if (words[1] === 'sh') expect(lines).toEqual([expect.stringMatching(/^show:/)]);
    else expect(lines).toEqual(expected);
  });
});

describeIfInstalled('fish')('fish', () => {
  test.each<[string, string[]]>([
    ['rankd key sh', ['show']],
    ['rankd key show ', ['lobby', 'lounge']],
    ['rankd history list --key lou', ['lounge']],
    ['rankd whitelist add --file list', ['list.d/', 'list.txt']],
    ['rankd --data-dir list', ['list.d/']],
  ])('completes %s to %j', (line, expected) => {
    const printed = shell(['fish', '--no-config', '-c'], `rankd completion fish | source; complete -C '${line}'`);
    expect(printed.map((one) => one.split('\t')[0]).toSorted()).toEqual(expected);
  });
});

describeIfInstalled('pwsh')('PowerShell', () => {
  test.each<[string, string[]]>([
    ['rankd key sh', ['show']],
    ['rankd key show ', ['lobby', 'lounge']],
  ])('completes %s to %j', (line, expected) => {
    const script = `rankd completion powershell | Out-String | Invoke-Expression
(TabExpansion2 -inputScript '${line}' -cursorColumn ${line.length}).CompletionMatches.CompletionText`;
    expect(shell(['pwsh', '-NoProfile', '-Command'], script)).toEqual(expected);
  });
});
