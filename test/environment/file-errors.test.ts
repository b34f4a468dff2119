import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { inWords } from '../../src/base/files.ts';
import { openPostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { runNode } from '../support/node-process.ts';
import { postgresDatabase } from '../support/postgres-database.ts';
import { CliHome } from '../support/run-cli.ts';
import { runUnprivileged } from '../support/run-unprivileged.ts';
import { TempDir } from '../support/temp-dir.ts';

/** Returns the path of one of these files and folders. In the rows below, `@` means the folder that contains them. */
let at: (name: string) => string;
beforeAll(() => {
  const dir = new TempDir();
  at = (name) => join(dir.path, name);
  for (const name of ['data', 'folder', 'closed', 'write-only', 'with-socket', 'with-unit', 'with-lock'])
    mkdirSync(at(name), { mode: 0o700 });
  for (const name of ['with-lock/daemon.lock', 'with-socket/daemon.sock', 'with-unit/rankd.service'])
    mkdirSync(at(name));
  writeFileSync(at('file'), '');
  chmodSync(at('closed'), 0);
  chmodSync(at('write-only'), 0o300);
  return () => {
    for (const name of ['closed', 'write-only']) chmodSync(at(name), 0o700);
    dir[Symbol.dispose]();
  };
});

interface Place {
  dataDir?: string;
  TMPDIR?: string;
}

test.each<[line: string, code: number, says: RegExp, place?: Place]>([
  ['game write --luau --out @file/x --url http://localhost:1', 3, /^error: @file\/x can't be a folder/],
  [
    'game write --luau --out @closed/x --url http://localhost:1',
    77,
    /^error: rankd is not allowed to write @closed\/x/,
  ],
  ['service install --dir @with-unit', 2, /^error: @with-unit\/rankd\.service is a folder, not a file/],
  ['service remove --dir @with-unit', 4, /^error: @with-unit\/rankd\.service is a folder, but rankd needs a file/m],
  ['restore -', 3, /^error: The folder @gone does not exist/, { TMPDIR: '@gone' }],
  ['store copy --from @closed/x --to @copy', 77, /^error: This user is not allowed to open @closed\/x/],
  ['store copy --from @file/x --to @copy', 3, /^error: There is no @file\/x/],
  ['rank set --file @file/x 5', 3, /^error: @file\/x does not exist/],
  [
    'serve --port 0',
    4,
    /^error: @with-socket\/daemon\.sock is a folder, but rankd needs a file/m,
    { dataDir: '@with-socket' },
  ],
  ['serve --port 0', 69, /^error: rankd can't open its database/m, { dataDir: '@with-lock' }],
])(
  'rankd %s exits with code %i and reports a problem with a file in two lines',
  async (line, code, says, { dataDir = '@none', ...env } = {}) => {
    const named = (text: string) => text.replaceAll('@', `${at('')}/`);
    const variables = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, named(value)]));
    const { stderr, ...result } = await runUnprivileged(line.split(' ').map(named), named(dataDir), variables);
    const expected = new RegExp(named(says.source), says.flags);
    expect({ code: result.code, stderr }).toEqual({ code, stderr: expect.stringMatching(expected) });
    expect(stderr.match(/^(error|try):/gm)).toEqual(['error:', 'try:']);
  },
);

test('a file can be created in a folder that can be neither read nor synced', async () => {
  expect(await runUnprivileged(['key', 'create', 'game'], at('data'))).toMatchObject({ code: 0 });
  expect(await runUnprivileged(['backup', at('write-only/backup.db')], at('data'))).toMatchObject({ code: 0 });
});

test.each<[what: string, put: (file: string) => void, says: RegExp]>([
  ['text of another program', (file) => writeFileSync(file, 'hello'), /is not in rankd's format/],
  ['JSON of another kind', (file) => writeFileSync(file, '[]'), /is not in rankd's format/],
  ['a folder', (file) => mkdirSync(file), /is a folder, not a file/],
])('a list of clusters that is %s is reported in one sentence', async (_, put, says) => {
  const { url } = await postgresDatabase();
  const home = new CliHome();
  onTestFinished(() => home[Symbol.dispose]());
  mkdirSync(home.dataDir, { mode: 0o700 });
  put(join(home.dataDir, 'rankd.clusters'));
  const { code, stderr } = await home.here(['key', 'list'], { env: { RANKD_STORE_URL: url } });
  expect({ isExpected: [2, 78].includes(code ?? 0), stderr }).toEqual({
    isExpected: true,
    stderr: expect.stringMatching(says),
  });
  expect(stderr).toContain(join(home.dataDir, 'rankd.clusters'));
});

test('a daemon works even if the file with its node can’t be written', async () => {
  const { address } = await postgresDatabase();
  const nodeFile = at('file/node');
  const store = await openPostgresStore({ address, clock: new ManualClock(), nodeFile });
  expect(await store.enqueue(7)).toMatch(/^\d+$/);
  await store.close();
});

const cannotClose = {
  code: 'no_permission',
  message: expect.stringMatching(
    /^Other users can access the data directory .+, and rankd can't change its permissions\.$/,
  ),
  hint: 'choose a directory on a file system with Unix permissions, such as one in your home folder: --data-dir DIR',
};
const withoutEffect = 'fs.fchmodSync = () => undefined; syncBuiltinESMExports();';

test.runIf(process.getuid?.() === 0).each([
  ['fails', 0o755, '', cannotClose],
  ['has no effect on a directory that others can write to', 0o777, withoutEffect, cannotClose],
  ['has no effect on a directory that others can read', 0o755, withoutEffect, { isClosed: false }],
])('a data directory is refused with a hint, or reported as not private, if changing its mode %s', async (...row) => {
  const [, mode, before, expected] = row;
  const dir = at('foreign');
  mkdirSync(dir, { recursive: true });
  chmodSync(at(''), 0o755);
  chmodSync(dir, mode);
  chownSync(dir, 12_345, 12_345);
  const code = `
    import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    import { restrictToOwner } from './src/base/data-dir.ts';
    ${before}
    try {
      const isClosed = restrictToOwner(${JSON.stringify(dir)}, { uid: 12345, gid: 12345 });
      console.log(JSON.stringify({ isClosed }));
    } catch ({ code, message, hint }) {
      console.log(JSON.stringify({ code, message, hint }));
    }`;
  expect(await runNode(code, { uid: 65_534 })).toEqual(expected);
});

test.each<[code: string, syscall: string, says: string]>([
  ['ENOSPC', 'mkdir', 'The disk of /a is full, so rankd did not write /a/b.'],
  ['EDQUOT', 'copyfile', "This user's disk quota for /a is used up, so rankd did not write /a/b."],
  ['EROFS', 'open', 'The file system of /a is read-only, so rankd did not write /a/b.'],
  ['ENOTDIR', 'mkdir', "/a can't be a folder: a part of its path is a file."],
  ['EMFILE', 'open', 'The limit of open files is reached, so rankd did not open /a/b.'],
  ['ENFILE', 'scandir', 'The limit of open files is reached, so rankd did not open /a/b.'],
  ['EPERM', 'chmod', 'rankd is not allowed to write /a/b.'],
  ['EIO', 'stat', 'The disk of /a/b reported an error.'],
  ['EIO', 'rename', 'The disk of /a reported an error, so rankd did not write /a/b.'],
  [
    'ENOTSUP',
    'link',
    'The file system of /a does not support an operation that rankd needs, so rankd did not write /a/b.',
  ],
  ['ESTALE', 'stat', "/a/b can't be used (ESTALE)."],
])('%s of %s is reported in one sentence', (code, syscall, says) => {
  const error = Object.assign(new Error(code), { code, syscall, path: '/a/b' });
  expect(inWords(error)).toMatchObject({ message: says, hint: expect.any(String) });
});

test('an error that is not about a file is not changed', () => {
  for (const error of [
    new Error('x'),
    Object.assign(new Error('x'), { code: 'ECONNREFUSED', syscall: 'connect', address: '/a/b' }),
    Object.assign(new Error('x'), { code: 'ENOENT', syscall: 'spawn npm', path: 'npm' }),
  ])
    expect(inWords(error)).toBe(error);
});
