import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import installed from '../../node_modules/better-sqlite3/package.json' with { type: 'json' };
import manifest from '../../package.json' with { type: 'json' };
import { CopyOfRankd } from '../support/copy-of-rankd.ts';

test('what was compiled is kept beside the code by its owner, and by nobody else, root included', () => {
  using copy = new CopyOfRankd();
  if (process.getuid?.() === 0) chownSync(copy.dist, 12_345, 12_345);
  else chmodSync(copy.dist, 0o500);
  expect(run(copy, ['--version'])).toMatchObject({ status: 0, stderr: '' });
  expect(existsSync(copy.cache)).toBe(false);
  if (process.getuid?.() === 0) chownSync(copy.dist, 0, 0);
  else chmodSync(copy.dist, 0o700);
  const before = process.umask(0);
  try {
    expect(run(copy, ['--version'])).toMatchObject({ status: 0, stderr: '' });
  } finally {
    process.umask(before);
  }
  expect(statSync(copy.cache).mode & 0o777).toBe(0o700);
  expect(readdirSync(copy.cache)).not.toEqual([]);

  rmSync(copy.cache, { recursive: true });
  mkdirSync(copy.cache);
  chmodSync(copy.cache, 0o777);
  expect(run(copy, ['--version'])).toMatchObject({ status: 0, stderr: '' });
  expect(readdirSync(copy.cache)).toEqual([]);
});

test('a command takes what an earlier one compiled; under other flags of V8 it is compiled anew', () => {
  using copy = new CopyOfRankd({ packages: true });
  run(copy, ['key', 'list']);
  const kept = filesOf(copy.cache);
  expect(Object.keys(kept).map((name) => name.split('-', 1)[0])).toEqual(
    expect.arrayContaining(['main.cjs', 'program']),
  );
  run(copy, ['key', 'list']);
  expect(filesOf(copy.cache)).toEqual(kept);
  run(copy, ['key', 'list'], { NODE_OPTIONS: '--stack-trace-limit=20' });
  expect(filesOf(copy.cache)).not.toEqual(kept);
});

test('a daemon takes what an earlier one compiled for its start', async () => {
  using copy = new CopyOfRankd({ packages: true });
  await serve(copy, async () => {
    await vi.waitUntil(() => existsSync(copy.cache) && readdirSync(copy.cache).some(isServing), { timeout: 10_000 });
  });
  const kept = filesOf(copy.cache);
  await serve(copy, async () => undefined);
  expect(filesOf(copy.cache)).toEqual(kept);
});

test('a daemon serves on where what it compiled can no longer be kept', async () => {
  using copy = new CopyOfRankd({ packages: true });
  const code = await serve(copy, async () => {
    rmSync(copy.cache, { recursive: true });
    writeFileSync(copy.cache, '');
    await setTimeout(3_000); // it keeps what its start compiled two seconds after that began
  });
  expect(code).toBe(0);
});

test('a file that was changed is compiled anew, also where it is as long as before', () => {
  using copy = new CopyOfRankd();
  expect(run(copy, ['--version']).stdout).toBe(`${manifest.version}\n`);
  for (const name of readdirSync(copy.dist).filter((file) => file.endsWith('.cjs'))) {
    const file = join(copy.dist, name);
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(`"${manifest.version}"`, '"9.9.9"'));
  }
  expect(run(copy, ['--version']).stdout).toBe('9.9.9\n');
});

const damages: Array<[string, (kept: Buffer) => Buffer]> = [
  ['empty', () => Buffer.alloc(0)],
  ['cut short', (kept) => kept.subarray(0, -1)],
  ['half of what it was', (kept) => kept.subarray(0, kept.length / 2)],
  ['all zeros', (kept) => Buffer.alloc(kept.length)],
  ['changed in its middle', (kept) => Buffer.from(kept).fill('?', kept.length >> 1, (kept.length >> 1) + 16)],
];

test.each(damages)('what was kept is replaced where it is %s', (_, damage) => {
  using copy = new CopyOfRankd();
  run(copy, ['--version']);
  const [name = ''] = readdirSync(copy.cache);
  const file = join(copy.cache, name);
  const kept = readFileSync(file);
  writeFileSync(file, damage(kept));
  expect(run(copy, ['--version'])).toMatchObject({ status: 0, stderr: '' });
  expect(readFileSync(file)).toHaveLength(kept.length);
  expect(readFileSync(file)).not.toEqual(damage(kept));
});

test('not built: two lines and exit code 78', () => {
  using copy = new CopyOfRankd();
  rmSync(copy.dist, { recursive: true });
  const { status, stderr } = run(copy, ['key', 'list']);
  expect(status).toBe(78);
  expect(stderr).toMatch(/^error: rankd is not built: there is no .+main\.cjs\.\ntry: npm ci.+\n$/);
});

test.each([
  ['key', 'list'],
  ['serve', '--port', '0'],
])('without the addon, rankd %s says so, and how to mend it', (...line) => {
  using copy = new CopyOfRankd();
  const { status, stderr } = run(copy, line);
  expect(status).toBe(69);
  expect(stderr).toMatch(
    /^error: The SQLite addon of rankd, better-sqlite3, cannot be loaded\.\ntry: install rankd again .+\n$/,
  );
});

test('an addon that is not for this machine is told as one that is missing', () => {
  using copy = new CopyOfRankd();
  const addon = join(copy.folder, 'node_modules/better-sqlite3/build/Release/better_sqlite3.node');
  mkdirSync(dirname(addon), { recursive: true });
  writeFileSync(addon, 'of another machine');
  mkdirSync(join(copy.folder, 'node_modules/better-sqlite3/lib'));
  writeFileSync(join(copy.folder, 'node_modules/better-sqlite3/lib/index.js'), '');
  writeFileSync(join(copy.folder, 'node_modules/better-sqlite3/package.json'), '{"main":"lib/index.js"}');
  expect(run(copy, ['key', 'list']).stderr).toContain('cannot be loaded');
});

test('the addon that is installed is of the very version whose JavaScript is in the bundle', () => {
  expect(manifest.dependencies['better-sqlite3']).toBe(installed.version);
});

function run({ binary, folder }: CopyOfRankd, args: string[], env: Record<string, string> = {}) {
  const { PATH } = process.env;
  return spawnSync(process.execPath, [binary, ...args], {
    encoding: 'utf8',
    cwd: folder,
    env: { PATH, HOME: folder, ...env },
  });
}

/** `work` happens while the daemon listens. Resolves with its exit code. */
async function serve({ binary, folder }: CopyOfRankd, work: () => Promise<void>): Promise<number | null> {
  const { PATH } = process.env;
  const child = spawn(process.execPath, [binary, 'serve', '--port', '0'], { cwd: folder, env: { PATH, HOME: folder } });
  const exited = once(child, 'exit');
  await once(child.stdout, 'data');
  await work();
  child.kill();
  const [code] = await exited;
  return code;
}

const isServing = (name: string) => name.startsWith('run-daemon-') && !/\.\d+$/.test(name);

/** Of each file, a number that is another one where it was written anew. */
function filesOf(folder: string): Record<string, number> {
  return Object.fromEntries(readdirSync(folder).map((name) => [name, statSync(join(folder, name)).ino]));
}
