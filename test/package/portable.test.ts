import { type ChildProcessByStdio, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { blocksOf } from '../support/readme-commands.ts';
import { TempDir } from '../support/temp-dir.ts';

const build = fileURLToPath(new URL('../../config/build/portable.ts', import.meta.url));
const name = `rankd-${manifest.version}-linux-x64`;
const temp = new TempDir();
const out = join(temp.path, 'out');

/** Builds the archive for Linux x64. `xz` is a script that replaces xz, which is too slow for a test. */
function buildArchive(xz: string) {
  const folder = mkdtempSync(join(temp.path, 'programs-'));
  writeFileSync(join(folder, 'xz'), `#!/bin/sh\n${xz}\n`, { mode: 0o755 });
  const env = { ...process.env, PATH: `${folder}:${process.env['PATH']}` };
  return spawnSync(process.execPath, [build, '--only', 'linux-x64', '--out', out], { encoding: 'utf8', env });
}

/** The first commands in docs/install.md. */
const [install = ''] = blocksOf('docs/install.md', 'sh');
const portable = join(out, name);
let installed = '';
beforeAll(() => {
  const { status, stderr } = buildArchive('exec cat');
  if (status !== 0) throw new Error(stderr);
  installed = execFileSync('bash', ['-e'], { cwd: out, input: install, encoding: 'utf8' });
}, 120_000);
afterAll(() => temp[Symbol.dispose]());

/** Starts the portable rankd with no environment variables but those in `env`. */
function start(line: string[], { cwd = temp.path, env = [] as string[] } = {}) {
  const words = ['-i', ...env, join(portable, 'rankd'), ...line];
  return spawn('env', words, { cwd, stdio: ['ignore', 'pipe', 'pipe'] }) as ChildProcessByStdio<
    null,
    Readable,
    Readable
  >;
}

function run(line: string[], { cwd = temp.path, env = [] as string[] } = {}) {
  return spawnSync('env', ['-i', ...env, join(portable, 'rankd'), ...line], { cwd, encoding: 'utf8' });
}

const data = ['--data-dir', join(temp.path, 'data')];

test('the commands in docs/install.md check the archive, extract it and start rankd', () => {
  expect(installed).toBe(`${name}.tar.xz: OK\n${manifest.version}\n`);
});

test('the archive creates a key, verifies it, serves and stops, in an empty environment', async () => {
  expect(run(['--version'])).toMatchObject({ status: 0, stdout: `${manifest.version}\n` });
  const { stdout: secret, stderr } = run(['key', 'create', 'my-game', ...data]);
  expect(secret, stderr).toMatch(/^rk_live_/);
  run(['whitelist', 'add', '1', ...data]);
  const daemon = start(['serve', '--port', '0', '--json', ...data]);
  const [greeting] = await once(daemon.stdout.setEncoding('utf8'), 'data');
  const headers = { authorization: `Bearer ${secret.trim()}` };
  const body = JSON.stringify({ placeid: 1 });
  const verified = await fetch(`${JSON.parse(greeting).url}/v1/apikey`, { method: 'POST', headers, body });
  expect(verified.status).toBe(200);
  daemon.kill();
  expect(await once(daemon, 'exit')).toEqual([0, null]);
});

test('hints start rankd by its path in the archive, from its folder, or by its name if it is on PATH', () => {
  const hint = (...given: Parameters<typeof run>) => /^try: (.*)$/m.exec(run(...given).stderr)?.[1];
  const line = ['key', 'show', 'nobody', ...data];
  const rest = `${data.join(' ')} key list`;
  expect(hint(line)).toBe(`${portable}/rankd ${rest}`);
  expect(hint(line, { cwd: portable })).toBe(`./rankd ${rest}`);
  const folder = join(temp.path, 'on-path');
  mkdirSync(folder);
  symlinkSync(join(portable, 'rankd'), join(folder, 'rankd'));
  expect(hint(line, { env: [`PATH=${folder}:/bin`] })).toBe(`rankd ${rest}`);
});

test('the systemd unit starts the Node.js in the archive', () => {
  const [, node = '', script = ''] =
    /^ExecStart=(\S+) (\S+) serve/m.exec(run(['service', 'print', ...data]).stdout) ?? [];
  expect([node, script]).toEqual([join(portable, 'runtime/node'), join(portable, 'bin/rankd.js')]);
  expect([node, script].every((file) => existsSync(file))).toBe(true);
});

test('the archive has the licenses, the pages, the README and one addon', () => {
  const files = ['LICENSE', 'README.md', 'docs/hosting.md', 'dist/THIRD-PARTY-NOTICES', 'runtime/LICENSE'];
  const licenses = [...files, 'node_modules/better-sqlite3/LICENSE'];
  expect(licenses.filter((file) => !existsSync(join(portable, file)))).toEqual([]);
  expect(readdirSync(join(portable, 'node_modules/better-sqlite3/prebuilds'))).toEqual(['linux-x64.node']);
});

test('a failed build leaves the previous archive and checksums, and no partial file', () => {
  const read = () => readdirSync(out).map((file) => [file, statSync(join(out, file)).mtimeMs]);
  const before = read();
  const { status, stderr } = buildArchive('head -c 1000; exit 1');
  expect(status).toBe(1);
  expect(stderr).toMatch(/error: No archive was replaced: tar failed\.\ntry: .+\n$/);
  expect(read()).toEqual(before);
  expect(execFileSync('sha256sum', ['-c', 'SHA256SUMS'], { cwd: out, encoding: 'utf8' })).toBe(`${name}.tar.xz: OK\n`);
});
