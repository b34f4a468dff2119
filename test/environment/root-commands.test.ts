import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { binary, CliHome } from '../support/run-cli.ts';
import { modeOf } from '../support/temp-dir.ts';

const isRoot = process.getuid?.() === 0;
/** The uid of the service's user. */
const service = 65_534;

let home: CliHome;
beforeEach(() => {
  home = new CliHome();
  chmodSync(home.folder, 0o755);
});
afterEach(() => home[Symbol.dispose]());

describe.runIf(isRoot)('root, on the data directory of another user', () => {
  beforeEach(() => {
    mkdirSync(home.dataDir, { mode: 0o700 });
    chownSync(home.dataDir, service, service);
  });

  test.each([
    ['rank', 'set', '1001', 'Chief Officer'],
    ['--json', 'status'],
    ['serve', '--port', '0'],
    ['key', 'list'],
    ['health'],
    ['doctor', '--offline'],
    ['backup', 'copy.db'],
    ['restore', '-y', 'copy.db'],
    ['db', 'check'],
    ['reload'],
    ['dashboard'],
    ['init', '--group', '1', '--credential-file', 'roblox.key', '--no-check'],
  ])('is refused with the command that works, and creates no file: %s %s', async (...args) => {
    const typed = args.map((word) => (word.includes(' ') ? `'${word}'` : word)).join(' ');
    const tried = `sudo --preserve-env=RANKD_DATA_DIR -u nobody rankd ${typed}`;
    const refused = await home.here(args);
    expect(refused).toMatchObject({ code: 77, stdout: '' });
    expect(refused.stderr).toContain(
      `The data directory ${home.dataDir} belongs to the user nobody; rankd does not use it as root.`,
    );
    expect(refused.stderr).toContain(tried);
    expect(readdirSync(home.dataDir)).toEqual([]);
    expect(existsSync(home.path('copy.db'))).toBe(false);
  });

  test('can use the suggested command', async () => {
    const { stderr } = await home.run(['key', 'create', 'game']);
    const [, user, args = ''] = /^try: sudo --preserve-env=RANKD_DATA_DIR -u (\w+) rankd (.*)$/m.exec(stderr) ?? [];
    expect(user).toBe('nobody');
    expect(await runAs(service, args.split(' '))).toMatchObject({ code: 0 });
  });

  test('is refused for a new directory in that user’s folder, even if the user has no name', async () => {
    chownSync(home.dataDir, 54_321, 54_321);
    const dataDir = join(home.dataDir, 'deep', 'data');
    expect(await home.here(['key', 'list', '--data-dir', dataDir])).toMatchObject({
      code: 77,
      stdout: '',
      stderr: `error: The data directory ${dataDir} would be in ${home.dataDir}, which belongs to #54321; rankd does not use it as root.
try: sudo --preserve-env=RANKD_DATA_DIR -u '#54321' rankd key list --data-dir ${dataDir}
`,
    });
    expect(readdirSync(home.dataDir)).toEqual([]);
  });

  test('is refused for directories that `store copy` names', async () => {
    const own = home.path('own');
    expect((await home.here(['key', 'create', 'a'], { dataDir: own })).code).toBe(0);
    for (const [from, to] of [
      [own, home.dataDir],
      [home.dataDir, own],
    ])
      expect((await home.here(['store', 'copy', '--from', `${from}`, '--to', `${to}`])).code).toBe(77);
    expect(readdirSync(home.dataDir)).toEqual([]);
  });

  test('is not refused for commands that do not use it', async () => {
    for (const args of [['version'], ['config', 'show'], ['service', 'print'], ['openapi'], ['completion', 'bash']])
      expect(await home.here(args)).toMatchObject({ code: 0 });
  });

  test('never repeats a typed API key', async () => {
    const key = `rk_live_${'A'.repeat(30)}`;
    const { code, stderr } = await home.here(['key', 'show', key]);
    expect([code, stderr]).toEqual([77, expect.not.stringContaining(key)]);
  });
});

test.runIf(isRoot)('another user’s data directory is refused, regardless of its permissions', async () => {
  mkdirSync(home.dataDir);
  chmodSync(home.dataDir, 0o777);
  chownSync(home.dataDir, service, service);
  for (const args of [['key', 'create', 'a'], ['serve', '--port', '0'], ['db', 'check'], ['status']]) {
    expect(await runAs(1234, args)).toEqual({
      code: 77,
      stdout: '',
      stderr: `error: The data directory ${home.dataDir} belongs to another user (uid ${service}), who could add game keys to it.
try: run rankd as that user, or choose a directory of your own with --data-dir
`,
    });
  }
  expect(readdirSync(home.dataDir)).toEqual([]);
  expect((await home.here(['key', 'create', 'a'])).code).toBe(77);
  expect([statSync(home.dataDir).uid, modeOf(home.dataDir)]).toEqual([service, '777']);
});

test.each([0o777, 0o775, 0o755])(
  'a data directory with mode %o and no other files is closed to others, with a notice',
  async (mode) => {
    mkdirSync(home.dataDir);
    chmodSync(home.dataDir, mode);
    const { code, stderr } = await home.here(['key', 'create', 'a']);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining(
        `The data directory ${home.dataDir} was open to other users; now only its owner can enter it.\n`,
      ),
    });
    expect(modeOf(home.dataDir)).toBe('700');
    expect((await home.here(['key', 'list'])).stderr).toBe('');
  },
);

test('a data directory with other files is refused and not changed if others can write to it', async () => {
  mkdirSync(home.dataDir);
  writeFileSync(join(home.dataDir, 'notes.txt'), 'mine');
  chmodSync(home.dataDir, 0o1777);
  for (const args of [
    ['key', 'create', 'a'],
    ['serve', '--port', '0'],
    ['db', 'check'],
  ]) {
    expect(await home.here(args)).toMatchObject({
      code: 77,
      stdout: '',
      stderr: `error: Other users can write to the data directory ${home.dataDir} and could add game keys to it.
try: choose a new directory inside it: --data-dir ${join(home.dataDir, 'rankd')}
`,
    });
  }
  const doctor = await home.here(['doctor', '--offline']);
  expect(doctor).toMatchObject({ code: 5, stdout: expect.stringMatching(/^FAIL {2}data +other users/m) });
  expect([readdirSync(home.dataDir), modeOf(home.dataDir)]).toEqual([['notes.txt'], '777']);
  const dataDir = join(home.dataDir, 'rankd');
  expect(await home.here(['key', 'create', 'a'], { dataDir })).toMatchObject({ code: 0 });
});

test('every command refuses a database that is a link', async () => {
  await home.json('key', 'create', 'a');
  const real = home.path('real.db');
  const { renameSync } = await import('node:fs');
  renameSync(join(home.dataDir, 'rankd.db'), real);
  symlinkSync(real, join(home.dataDir, 'rankd.db'));
  for (const args of [
    ['key', 'list'],
    ['serve', '--port', '0'],
    ['db', 'check'],
    ['backup', '-'],
  ]) {
    expect(await home.here(args)).toMatchObject({
      code: 78,
      stdout: '',
      stderr: expect.stringContaining(`error: ${join(home.dataDir, 'rankd.db')} is a link, but rankd's files must be`),
    });
  }
});

async function runAs(uid: number, args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const { text } = await import('node:stream/consumers');
  const child = spawn(process.execPath, [binary, ...args], {
    cwd: '/',
    env: { HOME: '/nonexistent', RANKD_DATA_DIR: home.dataDir },
    ...{ uid, gid: uid },
  });
  child.stdin.end();
  const code = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await code, stdout, stderr };
}
