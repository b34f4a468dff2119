import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Makes the running Node say that it is an old one: the guard is tested also where the system's Node is new. */
const pretend =
  'data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.1.0"}})';
const runtimes: Array<[string, string[]]> = [
  ['a Node that says it is 20.1.0', [process.execPath, '--import', pretend]],
  ["the system's own Node", [systemNode()]],
];

describe.each(runtimes)('started by %s', (_, [node = '', ...flags]) => {
  test('rankd runs, on the Node that npm ci brought where the first is too old', () => {
    const { status, stdout, stderr } = spawnSync(node, [...flags, join(root, 'bin/rankd.js'), 'version'], {
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    expect(stdout).toContain(`rankd ${manifest.version}`);
    expect(status).toBe(0);
  });

  test('exit codes of the command come through', () => {
    const { status } = spawnSync(node, [...flags, join(root, 'bin/rankd.js'), 'no-such-command'], { encoding: 'utf8' });
    expect(status).toBe(2);
  });
});

test('too old, and no other Node at hand: two lines and exit code 78', () => {
  using copy = copyOfRankd();
  const line = ['--import', pretend, join(copy.folder, 'bin/rankd.js'), 'key', 'list'];
  const { status, stderr, signal } = spawnSync(process.execPath, line, { encoding: 'utf8' });
  expect(signal).toBeNull();
  expect(status).toBe(78);
  expect(stderr).toMatch(/^error: rankd needs Node\.js 22\.14 or newer; this is .+\ntry: .+\n$/);
});

test('what was compiled is kept beside the code by its owner, and by nobody else, root included', () => {
  using copy = copyOfRankd();
  const run = () => spawnSync(process.execPath, [join(copy.folder, 'bin/rankd.js'), '--version'], { encoding: 'utf8' });
  const kept = join(copy.folder, 'dist/.cache');
  if (process.getuid?.() === 0) chownSync(join(copy.folder, 'dist'), 12_345, 12_345);
  else chmodSync(join(copy.folder, 'dist'), 0o500);
  expect(run()).toMatchObject({ status: 0, stderr: '' });
  expect(existsSync(kept)).toBe(false);
  if (process.getuid?.() === 0) chownSync(join(copy.folder, 'dist'), 0, 0);
  else chmodSync(join(copy.folder, 'dist'), 0o700);
  const before = process.umask(0);
  try {
    expect(run()).toMatchObject({ status: 0, stderr: '' });
  } finally {
    process.umask(before);
  }
  expect(statSync(kept).mode & 0o777).toBe(0o700);
  expect(readdirSync(kept)).not.toEqual([]);

  rmSync(kept, { recursive: true });
  mkdirSync(kept);
  chmodSync(kept, 0o777);
  expect(run()).toMatchObject({ status: 0, stderr: '' });
  expect(readdirSync(kept)).toEqual([]);
});

/** The built package in a folder of its own. */
function copyOfRankd(): Disposable & { folder: string } {
  const folder = mkdtempSync(join(tmpdir(), 'rankd-guard-'));
  for (const part of ['bin', 'dist', 'package.json']) cpSync(join(root, part), join(folder, part), { recursive: true });
  rmSync(join(folder, 'dist/.cache'), { recursive: true, force: true });
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}

/** The first Node on the path that the project did not bring. */
function systemNode(): string {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => !folder.includes('node_modules'));
  const found = folders.map((folder) => join(folder, 'node')).find((file) => existsSync(file));
  return found ?? process.execPath;
}
