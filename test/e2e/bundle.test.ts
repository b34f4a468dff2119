import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { CopyOfRankd } from '../support/copy-of-rankd.ts';

test('with only its dependencies, the package runs a command, writes the game models and starts a daemon', async () => {
  using copy = new CopyOfRankd({ packages: true });
  expect(run(copy, ['key', 'list', '-q'])).toMatchObject({ status: 0, stderr: '' });
  const models = run(copy, ['game', 'write', 'Chat', '--url', 'https://rankd.example.com', '-q']);
  expect(models.stdout).toMatch(/Rankd\.rbxmx\n.*Chat\.rbxmx\n$/);
  expect(await serve(copy)).toBe(0);
});

test('rankd --version needs no dependency', () => {
  using copy = new CopyOfRankd();
  expect(run(copy, ['--version'])).toMatchObject({ status: 0, stdout: `${manifest.version}\n`, stderr: '' });
});

test.each([
  ['key', 'list', '-q'],
  ['__complete', 'key', '', ':2'],
])('rankd %s, which needs only the store, loads neither the web server nor the configuration schema', (...line) => {
  using copy = new CopyOfRankd({ packages: true });
  const isHeavy = (name: string) =>
    /\.js$/.test(name) && /FastifyError|ZodError/.test(readFileSync(join(copy.dist, name), 'utf8'));
  const heavy = readdirSync(copy.dist).filter(isHeavy);
  expect(heavy.length).toBeGreaterThan(1);
  for (const name of heavy) rmSync(join(copy.dist, name));
  expect(run(copy, line)).toMatchObject({ status: 0, stderr: '' });
});

// V8 stores a text with any character outside Latin-1 with two bytes per character, and then takes longer to find it in
// the compile cache.
test('the bundle is pure ASCII', () => {
  using copy = new CopyOfRankd();
  const bundled = readdirSync(copy.dist).filter((name) => name.endsWith('.js'));
  const isAscii = (name: string) => readFileSync(join(copy.dist, name)).every((byte) => byte < 0x80);
  expect(bundled.filter((name) => !isAscii(name))).toEqual([]);
});

test.each([
  ['visitors to its page', 'require-trusted-types-for', ['dashboard']],
  ['discord in its configuration', 'x-signature-ed25519', []],
])('a daemon without %s does not load the code for it', async (_without, mark, folders) => {
  using copy = new CopyOfRankd({ packages: true });
  const found = readdirSync(copy.dist).filter(
    (name) => /\.js$/.test(name) && readFileSync(join(copy.dist, name), 'utf8').includes(mark),
  );
  expect(found).toHaveLength(1);
  for (const name of [...found, ...folders]) rmSync(join(copy.dist, name), { recursive: true });
  expect(await serve(copy)).toBe(0);
});

test('rankd key list does not load the slow Node.js modules for cryptography, compression and HTTP', () => {
  using copy = new CopyOfRankd({ packages: true });
  const loaded = new LoadedModules(copy);
  expect(run(copy, ['key', 'list', '-q'], loaded.env)).toMatchObject({ status: 0, stderr: '' });
  expect(loaded.modules).toContain('fs');
  expect(loaded.modules).not.toEqual(expect.arrayContaining([expect.stringMatching(/^(crypto|zlib|_?http.*)$/)]));
});

test('rankd key list loads only six files of dist, because finding and linking files is slow', () => {
  using copy = new CopyOfRankd({ packages: true });
  const coverage = join(copy.home, 'coverage');
  expect(run(copy, ['key', 'list', '-q'], { NODE_V8_COVERAGE: coverage })).toMatchObject({ status: 0, stderr: '' });
  const [name = ''] = readdirSync(coverage);
  const { result } = JSON.parse(readFileSync(join(coverage, name), 'utf8')) as { result: Array<{ url: string }> };
  expect(result.filter(({ url }) => url.includes('/package/dist/'))).toHaveLength(6);
});

test('a daemon listens before it loads fetch, which takes longer than all of rankd’s own code', async () => {
  using copy = new CopyOfRankd({ packages: true });
  const loaded = new LoadedModules(copy);
  expect(await serve(copy, loaded.env)).toBe(0);
  expect(loaded.modules).toContain('http');
  expect(loaded.modules).not.toEqual(expect.arrayContaining([expect.stringMatching(/undici/)]));
});

test('the compile cache is in the user’s own cache folder, which no other user can write to', () => {
  using copy = new CopyOfRankd({ packages: true });
  const before = process.umask(0);
  try {
    expect(run(copy, ['key', 'list']).status).toBe(0);
  } finally {
    process.umask(before);
  }
  expect(statSync(copy.cache).mode & 0o777).toBe(0o700);
  expect(filesIn(copy.cache)).not.toEqual([]);
  expect(run(copy, ['key', 'list', '-q'])).toMatchObject({ status: 0, stderr: '' });
});

test('on Windows, the compile cache is in the local profile, outside the data directory', () => {
  using copy = new CopyOfRankd({ packages: true });
  const onWindows = "Object.defineProperty(process, 'platform', { value: 'win32' })";
  const local = join(copy.home, 'AppData');
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(onWindows)}`, LOCALAPPDATA: local };
  expect(run(copy, ['--version'], env)).toMatchObject({ status: 0, stderr: '' });
  expect(readdirSync(local)).toEqual(['rankd-cache']);
  expect(filesIn(join(local, 'rankd-cache'))).not.toEqual([]);
  expect(existsSync(copy.cache)).toBe(false);
});

test('nothing is cached in another user’s home, or if NODE_DISABLE_COMPILE_CACHE is set', () => {
  using copy = new CopyOfRankd({ packages: true });
  expect(run(copy, ['--version'], { NODE_DISABLE_COMPILE_CACHE: '1' }).status).toBe(0);
  expect(existsSync(copy.cache)).toBe(false);
  if (process.getuid?.() === 0) chownSync(copy.home, 12_345, 12_345);
  else chmodSync(copy.home, 0o500);
  expect(run(copy, ['--version'])).toMatchObject({ status: 0, stderr: '' });
  expect(existsSync(copy.cache)).toBe(false);
});

test('a read-only package works, even for concurrent starts', async () => {
  using copy = new CopyOfRankd({ packages: true });
  for (const folder of [copy.dist, copy.folder]) chmodSync(folder, 0o500);
  expect(run(copy, ['key', 'list']).status).toBe(0);
  const runs = Array.from({ length: 4 }, async () => {
    const child = start(copy, ['key', 'list', '--json']);
    const [out, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    return [code, JSON.parse(out)];
  });
  for (const outcome of await Promise.all(runs)) expect(outcome).toMatchObject([0, { keys: [] }]);
  for (const folder of [copy.folder, copy.dist]) chmodSync(folder, 0o700);
});

test('the licenses of all bundled packages are included', () => {
  const licenses = readFileSync(new URL('../../dist/THIRD-PARTY-NOTICES', import.meta.url), 'utf8');
  for (const name of ['fastify', 'zod', 'pino', 'commander', 'yaml', 'prom-client', 'preact', 'uplot', 'pg'])
    expect(licenses).toMatch(new RegExp(`^${name} \\d`, 'm'));
  for (const license of licenses.split(/^-{80}$/m))
    expect(license).toMatch(/^\S+ \S+ \(.+\)\n[\s\S]*(copyright|permission)[\s\S]{200}/im);
});

test('an installed package has the command, its manual page and the notices in the usual places', () => {
  using copy = new CopyOfRankd();
  const manifest = JSON.parse(readFileSync(join(copy.folder, 'package.json'), 'utf8'));
  // With no dependencies left, npm needs no registry.
  writeFileSync(join(copy.folder, 'package.json'), JSON.stringify({ ...manifest, dependencies: {} }));
  const npm = (line: string[]) => {
    const env = { PATH: process.env['PATH'] ?? '', HOME: copy.home };
    return execFileSync('npm', [...line, '--offline', '--ignore-scripts'], { encoding: 'utf8', cwd: copy.home, env });
  };
  const packed = npm(['pack', copy.folder, '--silent']).trim();
  npm(['install', '--global', '--prefix', copy.home, join(copy.home, packed)]);
  expect(statSync(join(copy.home, 'bin/rankd')).mode & 0o100).toBe(0o100);
  expect(readFileSync(join(copy.home, 'share/man/man1/rankd.1'), 'utf8')).toMatch(/^\.TH RANKD 1/im);
  expect(existsSync(join(copy.home, 'lib/node_modules/rankd/dist/THIRD-PARTY-NOTICES'))).toBe(true);
});

test('without a build, rankd prints the problem and the fix, and exits with 78', () => {
  using copy = new CopyOfRankd();
  rmSync(copy.dist, { recursive: true });
  const { status, stderr } = run(copy, ['key', 'list']);
  expect(status).toBe(78);
  expect(stderr).toMatch(
    /^error: A part of rankd is missing: .+\ntry: install rankd again; in a clone: npm ci --include=dev.+\n$/,
  );
});

test.each([
  ['key', 'list'],
  ['serve', '--port', '0'],
])('without the SQLite addon, rankd %s prints the problem and the fix', (...line) => {
  using copy = new CopyOfRankd();
  const { status, stderr } = run(copy, line);
  expect(status).toBe(78);
  expect(stderr).toMatch(/^error: A part of rankd is missing: .*better-sqlite3.*\ntry: install rankd again.+\n$/);
});

test('a SQLite addon for a different machine is reported as such', () => {
  using copy = new CopyOfRankd();
  const addon = join(copy.folder, 'node_modules/better-sqlite3');
  cpSync(fileURLToPath(new URL('../../node_modules/better-sqlite3/lib', import.meta.url)), join(addon, 'lib'), {
    recursive: true,
  });
  cpSync(
    fileURLToPath(new URL('../../node_modules/better-sqlite3/package.json', import.meta.url)),
    join(addon, 'package.json'),
  );
  mkdirSync(join(addon, 'build/Release'), { recursive: true });
  writeFileSync(join(addon, 'build/Release/better_sqlite3.node'), 'of another machine');
  const { status, stderr } = run(copy, ['key', 'list']);
  expect(status).toBe(69);
  expect(stderr).toMatch(/^error: rankd can't load its SQLite addon, better-sqlite3\.\ntry: install rankd again .+\n$/);
  expect(run(copy, ['doctor', '--offline'])).toMatchObject({
    status: 5,
    stdout: expect.stringMatching(/^FAIL {2}node +rankd can't load its SQLite addon, better-sqlite3\.$/m),
  });
});

test('doctor reports a Node.js that was started without a feature that rankd needs', () => {
  using copy = new CopyOfRankd({ packages: true });
  const { status, stdout } = run(copy, ['doctor', '--offline'], { NODE_OPTIONS: '--jitless' });
  expect(stdout).toMatch(
    /^FAIL {2}node +Node\.js \S+ lacks fetch \(for calls to Roblox\)\n +try: unset NODE_OPTIONS, .+$/m,
  );
  expect(status).toBe(5);
});

function environment({ home }: CopyOfRankd): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', HOME: home };
}

function run(copy: CopyOfRankd, args: string[], env: Record<string, string> = {}) {
  return spawnSync(process.execPath, [copy.binary, ...args], {
    encoding: 'utf8',
    cwd: copy.home,
    env: { ...environment(copy), ...env },
  });
}

function start(copy: CopyOfRankd, args: string[], env: Record<string, string> = {}) {
  return spawn(process.execPath, [copy.binary, ...args], { cwd: copy.home, env: { ...environment(copy), ...env } });
}

/** Reports which Node.js modules a process had loaded when it exited. */
class LoadedModules {
  readonly #file: string;
  readonly env: { NODE_OPTIONS: string };

  constructor({ home }: CopyOfRankd) {
    this.#file = join(home, 'modules.json');
    const preload = `import { writeFileSync } from 'node:fs';
      process.on('exit', () => writeFileSync('${this.#file}', JSON.stringify(process.moduleLoadList)));`;
    this.env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}` };
  }

  get modules(): string[] {
    const loaded = JSON.parse(readFileSync(this.#file, 'utf8')) as string[];
    return loaded.map((name) => name.replace('NativeModule ', ''));
  }
}

async function serve(copy: CopyOfRankd, env: Record<string, string> = {}): Promise<number | null> {
  const child = start(copy, ['serve', '--port', '0'], env);
  const exited = once(child, 'exit');
  await once(child.stdout, 'data');
  child.kill();
  const [code] = await exited;
  return code;
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    statSync(join(folder, name)).isFile(),
  );
}
