import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CliHome } from '../support/run-cli.ts';
import { runUnprivileged } from '../support/run-unprivileged.ts';

/** In a data directory that rankd can't use, commands that open the database fail with a two-line error. */
const home = new CliHome();
afterAll(() => home[Symbol.dispose]());
let usedDatabase: Buffer;
beforeAll(async () => {
  await home.json('key', 'create', 'game');
  usedDatabase = readFileSync(join(home.dataDir, 'rankd.db'));
});

const commands = [
  ['key', 'list'],
  ['key', 'create', 'another'],
  ['serve', '--port', '0'],
];

interface BadDirectory {
  name: string;
  /** Creates the bad directory at the path. If it is somewhere else, returns that path. */
  make: (path: string) => string | undefined;
  code: number;
  /** Parts of the error message, in which `DIR` is the path of the directory. */
  says: string[];
}

function withDatabase(path: string, content: Buffer, change: (file: string) => void = () => undefined): undefined {
  mkdirSync(path, { mode: 0o700 });
  writeFileSync(join(path, 'rankd.db'), content, { mode: 0o600 });
  change(join(path, 'rankd.db'));
}

const unusable: BadDirectory[] = [
  { name: 'a file', make: (path) => void writeFileSync(path, 'mine'), code: 78, says: ['DIR is not a directory'] },
  {
    name: 'a path inside a file',
    make: (path) => {
      writeFileSync(path, 'mine');
      return join(path, 'deep', 'down');
    },
    code: 78,
    says: ['DIR is not a directory'],
  },
  {
    name: 'a link to nothing',
    make: (path) => void symlinkSync(`${path}-nowhere`, path),
    code: 69,
    says: ['DIR points to DIR-nowhere, which does not exist', 'create DIR-nowhere'],
  },
  {
    name: 'a link to itself',
    make: (path) => void symlinkSync(path, path),
    code: 78,
    says: ['DIR is not a directory'],
  },
  {
    name: 'a directory named rankd.db',
    make: (path) => void mkdirSync(join(path, 'rankd.db'), { recursive: true, mode: 0o700 }),
    code: 69,
    says: ['check that DIR/rankd.db is a file'],
  },
  {
    name: 'a rankd.db that is not a database',
    make: (path) => withDatabase(path, randomBytes(5_000)),
    code: 78,
    says: ['DIR/rankd.db is not a rankd database', 'move it out of DIR'],
  },
  {
    name: 'a rankd.db of a newer version',
    make: (path) => withDatabase(path, usedDatabase, setNewerSchema),
    code: 78,
    says: ['DIR/rankd.db has schema 99', 'run that version or a later one instead'],
  },
  {
    name: 'a rankd.db that was cut off',
    make: (path) => withDatabase(path, usedDatabase, (file) => truncateSync(file, 8_192)),
    code: 69,
    says: ['damaged', 'a backup of DIR/rankd.db'],
  },
  {
    name: 'a rankd.db with garbage after its header',
    make: (path) => withDatabase(path, Buffer.from(usedDatabase).fill(0xff, 4_096)),
    code: 69,
    says: ['damaged', 'a backup of DIR/rankd.db'],
  },
  ...(existsSync('/proc/self')
    ? [
        {
          name: 'a path where the system creates no directories',
          make: () => '/proc/rankd/data',
          code: 69,
          says: ['rankd cannot create a folder at DIR', 'with --data-dir or RANKD_DATA_'],
        },
      ]
    : []),
];

test.concurrent.each(unusable)(
  '$name is not changed, and is reported in two lines with exit code $code',
  async (bad) => {
    const path = home.path(bad.name.replaceAll(' ', '-'));
    const dataDir = bad.make(path) ?? path;
    const before = contentOf(dataDir);
    for (const command of commands) {
      const { code, stdout, stderr } = await home.here(command, { dataDir });
      expect({ code, stdout }).toEqual({ code: bad.code, stdout: '' });
      expect(stderr).toMatch(/^error: .+\ntry: .+\n$/);
      for (const part of bad.says) expect(stderr).toContain(part.replaceAll('DIR', dataDir));
    }
    expect(contentOf(dataDir)).toEqual(before);
  },
);

const forbidden: Array<{ name: string; forbid: (dataDir: string) => string; names: string }> = [
  { name: 'an empty directory', forbid: (dataDir) => emptied(dataDir), names: 'DIR' },
  { name: 'a directory in such a one', forbid: (dataDir) => join(emptied(dataDir), 'new'), names: 'DIR' },
  { name: 'a directory in use', forbid: (dataDir) => chmod(dataDir, 0o500), names: 'DIR' },
  { name: 'the database', forbid: (dataDir) => inside(dataDir, 'rankd.db', 0o400), names: 'DIR/rankd.db' },
  { name: 'a closed database', forbid: (dataDir) => inside(dataDir, 'rankd.db', 0), names: 'DIR/rankd.db' },
];

test.concurrent.each(forbidden)(
  '$name that is not writable causes exit code 77, with the reason and the fix',
  async (one) => {
    const path = home.path(`forbidden-${one.name.replaceAll(' ', '-')}`);
    withDatabase(path, usedDatabase);
    const dataDir = one.forbid(path);
    for (const command of commands) {
      const { code, stdout, stderr } = await runUnprivileged(command, dataDir);
      expect({ code, stdout, stderr }).toMatchObject({ code: 77, stdout: '' });
      expect(stderr).toMatch(/^error: .+\ntry: .+\n$/);
      const named = one.names.replace('DIR', dataDir);
      expect(stderr).toContain(`not allowed to write to ${named}.`);
      expect(stderr).toContain('--data-dir');
    }
    chmodSync(path, 0o700);
  },
);

test.concurrent('status, health and reload report an unreadable directory, instead of a missing daemon', async () => {
  const dataDir = home.path('closed');
  mkdirSync(dataDir, { mode: 0 });
  for (const command of [['status'], ['health'], ['reload']]) {
    expect(await runUnprivileged(command, dataDir)).toEqual({
      code: 77,
      stdout: '',
      stderr: `error: This user is not allowed to read the data directory ${dataDir}.
try: run the command as its owner: sudo -u root rankd …
`,
    });
  }
  const { code, stdout } = await runUnprivileged(['doctor', '--offline'], dataDir);
  expect({ code, stdout }).toEqual({
    code: 5,
    stdout: expect.stringMatching(
      /^FAIL {2}data +This user is not allowed to read the data directory .+\n +try: run the command as /m,
    ),
  });
});

test.runIf(process.getuid?.() === 0)('doctor prints the command that takes back a file of another user', async () => {
  const dataDir = home.path('with-a-file-of-another-user');
  withDatabase(dataDir, usedDatabase);
  const file = join(dataDir, 'rankd.db');
  chownSync(file, 12_345, 12_345);
  chmodSync(file, 0o600);
  const { stdout } = await runUnprivileged(['doctor', '--offline'], dataDir);
  expect(stdout.replaceAll(/ +/g, ' ')).toContain(
    `FAIL data this user has no permission to write to ${file}\n try: sudo chown root ${file}\n`,
  );
});

/** Ignores the lock file, because rankd takes the lock before it reads the database. */
function contentOf(path: string): Record<string, string> {
  try {
    const names = readdirSync(path).filter((name) => name !== 'daemon.lock');
    return Object.fromEntries(names.map((name) => [name, contentOfFile(join(path, name))]));
  } catch (error) {
    return { '': (error as NodeJS.ErrnoException).code === 'ENOTDIR' ? contentOfFile(path) : String(error) };
  }
}

function contentOfFile(file: string): string {
  try {
    return readFileSync(file, 'hex');
  } catch (error) {
    return String(error);
  }
}

function chmod(path: string, mode: number): string {
  chmodSync(path, mode);
  return path;
}

function inside(dataDir: string, name: string, mode: number): string {
  chmodSync(join(dataDir, name), mode);
  return dataDir;
}

function emptied(dataDir: string): string {
  const empty = `${dataDir}-empty`;
  mkdirSync(empty, { mode: 0o500 });
  return empty;
}

function setNewerSchema(file: string): void {
  const database = new Database(file);
  database.pragma('user_version = 99');
  database.close();
}
