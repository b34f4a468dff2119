import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { binary, CliHome } from '../support/run-cli.ts';
import { modeOf } from '../support/temp-dir.ts';

const isRoot = process.getuid?.() === 0;
/** The service's user. */
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

  /** A folder that only root can enter. */
  function rootFolder(): string {
    const folder = home.path('root');
    mkdirSync(folder, { mode: 0o700 });
    return folder;
  }

  async function succeed(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await home.run(args);
    expect(code, `${args.join(' ')}: ${stderr}`).toBe(0);
    return stdout;
  }

  const ownersOf = (folder: string) => new Set(readdirSync(folder).map((name) => statSync(join(folder, name)).uid));

  test('makes every file as that user, who goes on with all of them, also on the simulated group', async () => {
    await succeed('rank', 'set', '1001', '20');
    await succeed('key', 'create', 'game');
    await succeed('db', 'check');
    await succeed('doctor', '--offline');
    expect(readdirSync(home.dataDir)).toContain('simulated-group.db');
    expect(ownersOf(home.dataDir)).toEqual(new Set([service]));
    for (const args of [
      ['rank', 'set', '1001', '10'],
      ['key', 'revoke', 'game', '-y'],
      ['backup', join(home.dataDir, 'b')],
    ])
      expect(await runAs(service, args)).toMatchObject({ code: 0 });
  });

  test('makes a new data directory in the folder of that user as that user', async () => {
    const dataDir = join(home.dataDir, 'deep', 'data');
    expect(await home.run(['key', 'create', 'game'], { dataDir })).toMatchObject({ code: 0 });
    expect(ownersOf(dataDir)).toEqual(new Set([service]));
    expect(statSync(dataDir).uid).toBe(service);
  });

  test('reads and writes what the command line and the configuration name as root', async () => {
    const folder = rootFolder();
    const [secret, backup, config] = ['game.key', 'copy.db', 'rankd.yaml'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(config, 'policy: { max_rank: 10 }\n', { mode: 0o600 });
    writeFileSync(join(folder, 'places'), '7\n', { mode: 0o600 });
    await succeed('key', 'create', 'game', '--out', secret);
    await succeed('whitelist', 'add', '--file', join(folder, 'places'));
    expect((await home.run(['rank', 'set', '1001', '20', '--config', config])).code).toBe(5);
    await succeed('backup', backup);
    await succeed('key', 'create', 'later');
    expect((await home.run(['backup', backup])).code).toBe(4);
    await succeed('backup', '--force', `${folder}/../root/copy.db`);
    await succeed('key', 'create', 'lost');
    await succeed('restore', '--dry-run', backup);
    await succeed('restore', '-y', backup);
    expect(await succeed('key', 'list')).toMatch(/game[\s\S]*later/);
    expect(await succeed('key', 'list')).not.toContain('lost');
    for (const file of [secret, backup]) expect([statSync(file).uid, modeOf(file)]).toEqual([0, '600']);
    expect(readdirSync(folder).sort()).toEqual(['copy.db', 'game.key', 'places', 'rankd.yaml']);
    expect(ownersOf(home.dataDir)).toEqual(new Set([service]));
    expect(readdirSync(home.dataDir).filter((name) => name.startsWith('rankd-scratch'))).toEqual([]);
  });

  test('names in its errors the backup that was named', async () => {
    await succeed('key', 'create', 'game');
    const file = join(rootFolder(), 'copy.db');
    writeFileSync(file, 'no database at all'.repeat(1_000), { mode: 0o600 });
    expect(await home.run(['restore', '-y', file])).toMatchObject({
      code: 5,
      stderr: expect.stringContaining(`error: ${file} is not a database of rankd; nothing was changed.`),
    });
    expect((await home.run(['restore', '-y', `${file}.none`])).code).toBe(3);
  });

  test('a file of the data directory that is named is opened as its owner: a link there leads to nothing of root’s', async () => {
    await succeed('key', 'create', 'game');
    const target = join(rootFolder(), 'copy.db');
    await succeed('backup', target);
    symlinkSync(target, join(home.dataDir, 'kept.db'));
    symlinkSync(join(home.dataDir, 'kept.db'), home.path('outside.db'));
    const before = readFileSync(target);
    expect((await home.run(['restore', '-y', join(home.dataDir, 'kept.db')])).code).not.toBe(0);
    await home.run(['backup', '--force', join(home.dataDir, 'kept.db')]);
    await home.run(['backup', '--force', home.path('outside.db')]);
    await succeed('backup', join(home.dataDir, 'own.db'));
    expect(readFileSync(target).equals(before)).toBe(true);
    expect(statSync(join(home.dataDir, 'own.db')).uid).toBe(service);
  });

  test('takes no right away from a file outside that a link there leads to', async () => {
    await succeed('key', 'create', 'game');
    new Database(join(home.dataDir, 'rankd.db')).exec('PRAGMA journal_mode = DELETE').close();
    const tool = home.path('tool');
    writeFileSync(tool, '#!/bin/sh\n', { mode: 0o755 });
    symlinkSync(tool, join(home.dataDir, 'rankd.db-shm'));
    const { code, stderr } = await home.run(['key', 'list']);
    expect([code, modeOf(tool), readFileSync(tool, 'utf8')], stderr).toEqual([
      expect.any(Number),
      '755',
      '#!/bin/sh\n',
    ]);
    expect(code).not.toBe(0);
  });

  test('gives no file away to an owner who puts links in the place of new files', async () => {
    const secret = join(rootFolder(), 'secret');
    writeFileSync(secret, 'secret', { mode: 0o600 });
    attack(
      `(name, file) => name === 'rankd.db' && lstatSync(file).isFile() && replace(file, ${JSON.stringify(secret)})`,
    );
    for (let tries = 0; tries < 6; tries += 1) {
      await home.run(['key', 'list']);
      expect(statSync(secret).uid).toBe(0);
      rmSync(join(home.dataDir, 'rankd.db'), { force: true });
    }
  });

  test('makes no file outside for an owner who puts links in the place of new files', async () => {
    await succeed('key', 'create', 'game');
    const target = join(home.path('root-only'), 'zz.sh');
    mkdirSync(home.path('root-only'), { mode: 0o755 });
    attack(`(name, file) => /backup-|trial-|scratch-/.test(name) && replace(file, ${JSON.stringify(target)})`);
    for (const args of [
      ['backup', '-'],
      ['backup', '-'],
      ['backup', home.path('copy.db')],
      ['backup', '-'],
    ]) {
      await home.run(args);
      expect(existsSync(target)).toBe(false);
    }
  });

  test('says so where that user can’t reach the directory', async () => {
    const dataDir = join(rootFolder(), 'data');
    mkdirSync(dataDir, { mode: 0o700 });
    chownSync(dataDir, service, service);
    expect(await home.run(['key', 'list'], { dataDir })).toEqual(
      expect.objectContaining({
        code: 77,
        stdout: '',
        stderr: `error: The data directory ${dataDir} is another user (uid ${service})'s, who may not reach it.
try: let that user enter every folder above it, or move it to where that user can, such as /var/lib/rankd
`,
      }),
    );
    expect(readdirSync(dataDir)).toEqual([]);
  });

  /** A process of the directory's owner that looks for names in it again and again, and does this with each. */
  function attack(step: string): void {
    const code = `
      const { lstatSync, readdirSync, renameSync, symlinkSync } = require('node:fs');
      const replace = (file, target) => { symlinkSync(target, file + '.l'); renameSync(file + '.l', file); };
      const step = ${step};
      for (;;) for (const name of readdirSync('.')) try { step(name, name); } catch {}`;
    const child = spawn(process.execPath, ['--eval', code], { cwd: home.dataDir, uid: service, gid: service });
    onTestFinished(() => void child.kill('SIGKILL'));
  }
});

test.runIf(isRoot)('a data directory of another user is refused, whoever may write to it', async () => {
  mkdirSync(home.dataDir);
  chmodSync(home.dataDir, 0o777);
  chownSync(home.dataDir, service, service);
  for (const args of [['key', 'create', 'a'], ['serve', '--port', '0'], ['db', 'check'], ['status']]) {
    expect(await runAs(1234, args)).toEqual({
      code: 77,
      stdout: '',
      stderr: `error: The data directory ${home.dataDir} belongs to another user (uid ${service}), who could put other keys into it.
try: run rankd as that user, or name a directory of your own with --data-dir
`,
    });
  }
  expect(readdirSync(home.dataDir)).toEqual([]);
  expect(await home.run(['key', 'create', 'a'])).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('was open to other users; now only its owner can enter it.\n'),
  });
  expect([statSync(home.dataDir).uid, modeOf(home.dataDir)]).toEqual([service, '700']);
});

test.each([0o777, 0o775, 0o755])(
  'a data directory of mode %o with nothing else in it is closed to others, and that is said',
  async (mode) => {
    mkdirSync(home.dataDir);
    chmodSync(home.dataDir, mode);
    const { code, stderr } = await home.run(['key', 'create', 'a']);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining(
        `The data directory ${home.dataDir} was open to other users; now only its owner can enter it.\n`,
      ),
    });
    expect(modeOf(home.dataDir)).toBe('700');
    expect((await home.run(['key', 'list'])).stderr).toBe('');
  },
);

test('a data directory with other files in it is refused if others may write to it, and left as it is', async () => {
  mkdirSync(home.dataDir);
  writeFileSync(join(home.dataDir, 'notes.txt'), 'mine');
  chmodSync(home.dataDir, 0o1777);
  for (const args of [
    ['key', 'create', 'a'],
    ['serve', '--port', '0'],
    ['db', 'check'],
  ]) {
    expect(await home.run(args)).toMatchObject({
      code: 77,
      stdout: '',
      stderr: `error: Other users may write to the data directory ${home.dataDir}, and could put other keys into it.
try: name a new directory in it: --data-dir ${join(home.dataDir, 'rankd')}
`,
    });
  }
  const doctor = await home.run(['doctor', '--offline']);
  expect(doctor).toMatchObject({ code: 5, stdout: expect.stringMatching(/^FAIL {2}data +other users/m) });
  expect([readdirSync(home.dataDir), modeOf(home.dataDir)]).toEqual([['notes.txt'], '777']);
  const dataDir = join(home.dataDir, 'rankd');
  expect(await home.run(['key', 'create', 'a'], { dataDir })).toMatchObject({ code: 0 });
});

test('a database that is a link is refused by every command', async () => {
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
    expect(await home.run(args)).toMatchObject({
      code: 78,
      stdout: '',
      stderr: expect.stringContaining(`error: ${join(home.dataDir, 'rankd.db')} is a link; rankd keeps its files`),
    });
  }
});

/** Runs the built `rankd` on the data directory as another user than root. */
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
