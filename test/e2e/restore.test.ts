import {
  chmodSync,
  closeSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { runCli as runProgram } from '../../src/cli/program.ts';
import { migrations } from '../../src/stores/sqlite/schema/migrations.ts';
import { TerminalIo } from '../support/command-io.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { binary, CliHome } from '../support/run-cli.ts';

const schema = migrations.length;

/** The key "old" is in `backup.db`; the key "new" was created after the backup. */
const model = new CliHome();
beforeAll(async () => {
  await model.json('key', 'create', 'old');
  await model.json('backup', 'backup.db');
  await model.json('key', 'create', 'new');
});
afterAll(() => model[Symbol.dispose]());

let home: CliHome;
let backup: string;
let database: string;
beforeEach(() => {
  home = new CliHome();
  cpSync(model.folder, home.folder, { recursive: true });
  chmodSync(home.dataDir, 0o700);
  backup = home.path('backup.db');
  database = join(home.dataDir, 'rankd.db');
});
afterEach(() => home[Symbol.dispose]());

const keyNames = async (dataDir = home.dataDir) => {
  const { stdout } = await home.here(['key', 'list', '--json'], { dataDir });
  return JSON.parse(stdout).keys.map(({ name }: { name: string }) => name);
};
const keptFiles = () => readdirSync(home.dataDir).filter((name) => name.includes('before-restore'));
const keptDatabase = () => join(home.dataDir, keptFiles().find((name) => name.endsWith('Z')) ?? 'none');

test('a restore brings back the database of the backup, saves the old one, and is recorded in the audit', async () => {
  const { code, stdout, stderr } = await home.here(['restore', 'backup.db', '-y']);
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: `The backup is restored in ${home.dataDir}; the next daemon there uses it.\nKeys revoked since the backup are accepted again, and rank changes made since are not in the history. To see the keys: rankd key list\n`,
  });
  expect(stdout).toBe(
    `FIELD         VALUE
file          ${backup}
schema        ${schema}
keys          1
whitelist     0
changes       0
audit events  1
kept          ${keptDatabase()}
`,
  );
  expect(keptDatabase()).toMatch(/rankd\.db\.before-restore-\d{8}T\d{9}Z$/);
  expect(readdirSync(home.dataDir).sort()).toEqual(['daemon.lock', 'rankd.db', ...keptFiles()].sort());
  for (const file of [database, keptDatabase()]) expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
  expect(await keyNames()).toEqual(['old']);
  const { events } = await home.json<{ events: unknown[] }>('audit', 'list', '--limit', '1');
  expect(events).toMatchObject([
    {
      by: expect.stringMatching(/^cli:/),
      action: 'database.restore',
      subject: 'rankd.db',
      detail: { file: 'backup.db', kept: expect.stringMatching(/^rankd\.db\.before-restore-/) },
    },
  ]);
});

test('a restore loses nothing: the old database can be restored as well', async () => {
  await home.json('restore', 'backup.db', '-y');
  const { restore } = await home.json<{ restore: object }>('restore', keptDatabase(), '-y');
  expect(restore).toEqual({
    file: expect.stringContaining('before-restore'),
    schema,
    keys: 2,
    whitelist: 0,
    changes: 0,
    auditEvents: 3, // two keys and the backup
    kept: expect.stringContaining('before-restore'),
    dryRun: false,
  });
  expect(await keyNames()).toEqual(['old', 'new']);
  expect((await home.here(['audit', 'verify'])).code).toBe(0);
});

test('--dry-run checks the file and changes nothing, even while a daemon is running', async () => {
  const before = readFileSync(database);
  const { code, stdout, stderr } = await home.here(['restore', '--dry-run', 'backup.db']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: 'The backup is sound; nothing was changed.\n' });
  expect(stdout).toBe(
    `FIELD         VALUE
file          ${backup}
schema        ${schema}
keys          1
whitelist     0
changes       0
audit events  1
`,
  );
  expect(readFileSync(database).equals(before)).toBe(true);
  await using _daemon = await DaemonHere.start(home);
  const beside = await home.here(['restore', '--dry-run', 'backup.db']);
  expect(beside).toMatchObject({
    code: 0,
    stderr: 'The backup is sound; nothing was changed. Stop the daemon before you restore it.\n',
  });
  expect(await keyNames()).toEqual(['old', 'new']);
});

test('while a daemon is running, a restore exits with 4, names the daemon and changes nothing', async () => {
  await using daemon = await DaemonProcess.start(home);
  for (const line of [
    ['restore', 'backup.db', '-y'],
    ['serve', '--port', '0'],
  ]) {
    expect(await home.here(line)).toMatchObject({
      code: 4,
      stdout: '',
      stderr: `error: A rankd daemon is already running on ${home.dataDir}: process ${daemon.process.pid}, at ${daemon.url}.
try: check it with \`rankd status\` and stop it, or name a different directory with --data-dir
`,
    });
  }
  expect(await keyNames()).toEqual(['old', 'new']);
  expect(keptFiles()).toEqual([]);
});

test('a restore asks first: without a terminal or -y, it exits with 2 and changes nothing', async () => {
  const result = await home.here(['restore', 'backup.db'], { input: 'y\n' });
  expect(result).toMatchObject({
    code: 2,
    stdout: '',
    stderr: `error: Replace the database in ${home.dataDir} with backup.db? This needs confirmation, but there is no terminal.
try: add -y, or run it on a terminal
`,
  });
  expect(await keyNames()).toEqual(['old', 'new']);
  expect(keptFiles()).toEqual([]);
});

test('a restore asks for confirmation without control characters from the file name', async () => {
  const name = 'a\x1b]0;OWNED\x07.db';
  copyFileSync(backup, home.path(name));
  const io = new TerminalIo(home, ['n']);
  expect(await runProgram(['restore', name], io)).toBe(130);
  expect(io.err).toContain('with a\uFFFD]0;OWNED\uFFFD.db?');
  expect(io.err).not.toContain(name);
});

test('a restore exits with 4 while a different command has the database open', async () => {
  const other = new Database(database);
  other.exec('BEGIN; SELECT * FROM keys');
  other.prepare('SELECT name FROM keys').all();
  const result = await home.here(['restore', 'backup.db', '-y']);
  other.close();
  expect(result).toMatchObject({ code: 4, stdout: '' });
  expect(result.stderr).toMatch(/^error: Another process has the database open; nothing was changed\.\ntry: .+\n$/);
  expect(await keyNames()).toEqual(['old', 'new']);
  expect(keptFiles()).toEqual([]);
});

test('a restore into a new data directory saves no old database, and a daemon can use the result', async () => {
  const dataDir = home.path('fresh');
  const { code, stdout } = await home.here(['restore', 'backup.db', '-y', '--json'], { dataDir });
  expect({ code, kept: JSON.parse(stdout).restore.kept }).toEqual({ code: 0, kept: null });
  expect(readdirSync(dataDir).sort()).toEqual(['daemon.lock', 'rankd.db']);
  expect(await keyNames(dataDir)).toEqual(['old']);
});

test('the write-ahead log of a killed daemon stays with the old database, and is never applied to the new one', async () => {
  await using daemon = await DaemonProcess.start(home);
  await home.json('key', 'create', 'last-words');
  await daemon.stop('SIGKILL');
  expect(statSync(`${database}-wal`).size).toBeGreaterThan(0);
  await home.json('restore', 'backup.db', '-y');
  expect(await keyNames()).toEqual(['old']);
  expect((await home.json('db', 'check'))['ok']).toBe(true);
  await home.json('restore', keptDatabase(), '-y');
  expect(await keyNames()).toEqual(['old', 'new', 'last-words']);
});

test('an unreadable database is saved, and its log is not applied to the new one', async () => {
  await using daemon = await DaemonProcess.start(home);
  await home.json('key', 'create', 'last-words');
  await daemon.stop('SIGKILL');
  const descriptor = openSync(database, 'r+');
  writeSync(descriptor, Buffer.alloc(100, 0xff), 0, 100, 0);
  closeSync(descriptor);
  await home.json('restore', 'backup.db', '-y');
  expect(await keyNames()).toEqual(['old']);
  expect((await home.json('db', 'check'))['ok']).toBe(true);
  expect(readFileSync(keptDatabase()).subarray(0, 4)).toEqual(Buffer.alloc(4, 0xff));
});

test('a write-ahead log without its database is moved aside, and not applied to the new one', async () => {
  await using daemon = await DaemonProcess.start(home);
  await home.json('key', 'create', 'last-words');
  await daemon.stop('SIGKILL');
  rmSync(database);
  const log = readFileSync(`${database}-wal`);
  const { restore } = await home.json<{ restore: object }>('restore', 'backup.db', '-y');
  expect(restore).toMatchObject({ kept: null });
  expect(await keyNames()).toEqual(['old']);
  expect((await home.json('db', 'check'))['ok']).toBe(true);
  const aside = keptFiles().find((name) => name.endsWith('-wal')) ?? 'none';
  expect(readFileSync(join(home.dataDir, aside)).equals(log)).toBe(true);
});

const unusable: Array<{ what: string; make: (file: string) => void; code: number; says: string }> = [
  { what: 'a missing file', make: () => undefined, code: 3, says: 'There is no file' },
  { what: 'a folder', make: (file) => mkdirSync(file), code: 5, says: 'is not a file' },
  {
    what: 'a text file',
    make: (file) => writeFileSync(file, 'x'.repeat(5_000)),
    code: 5,
    says: 'is not a rankd database',
  },
  { what: 'an empty file', make: (file) => writeFileSync(file, ''), code: 5, says: 'is not a rankd database' },
  {
    what: 'a database of a different program',
    make: (file) => void new Database(file).exec('CREATE TABLE theirs (a)').close(),
    code: 5,
    says: 'is not a rankd database',
  },
  { what: 'a truncated backup', make: (file) => cutOff(file), code: 5, says: 'is damaged' },
  { what: 'a backup with a damaged page', make: (file) => overwritePage(file), code: 5, says: 'is damaged' },
  {
    what: 'a backup with a dangling reference',
    make: (file) => addDanglingEntry(file),
    code: 5,
    says: 'missing row of keys',
  },
  ...['trigger mine', 'view mine', 'table mine'].map((what) => ({
    what: `a file that brings its own ${what.split(' ')[0]}`,
    make: (file: string) =>
      changeSchema(
        file,
        what.startsWith('trigger')
          ? `CREATE ${what} AFTER INSERT ON keys BEGIN SELECT 1; END`
          : `CREATE ${what} ${what.startsWith('view') ? 'AS SELECT 1' : '(a)'}`,
      ),
    code: 5,
    says: `${what} is not part of rankd's schema`,
  })),
  {
    what: 'a file with a missing trigger',
    make: (file) => changeSchema(file, 'DROP TRIGGER audit_is_never_deleted'),
    code: 5,
    says: 'is missing',
  },
  {
    what: 'a backup with a truncated last line',
    make: (file) => writeFileSync(file, readFileSync(backup).subarray(0, -9)),
    code: 5,
    says: 'its digest does not match',
  },
  {
    what: 'a backup of a newer rankd',
    make: (file) => upgradeSchema(file, 98),
    code: 78,
    says: 'written by rankd 9.8.7',
  },
];

test.each(unusable)('$what is refused before anything changes', async ({ make, code, says }) => {
  const file = home.path('bad.db');
  make(file);
  const before = readFileSync(database);
  for (const args of [['-y'], ['--dry-run', '--json']]) {
    const result = await home.here(['restore', 'bad.db', ...args]);
    expect(result).toMatchObject({ code, stdout: '' });
    expect(result.stderr).toContain(says);
    if (!args.includes('--json')) expect(result.stderr).toMatch(/^error: .+\ntry: .+\n$/);
    else expect(result.json()).toMatchObject({ v: 1, success: false });
  }
  expect(readFileSync(database).equals(before)).toBe(true);
  expect(readdirSync(home.dataDir).filter((name) => name !== 'daemon.lock' && name !== 'rankd.db')).toEqual([]);
});

test('a single changed bit anywhere in a backup is detected, even where SQLite does not check', async () => {
  const bytes = readFileSync(backup);
  const name = bytes.indexOf('old'); // a byte in the key's row
  const file = home.path('bad.db');
  const offsets = [0, 20, 100, 5_000, name, bytes.length >> 1, -200, -87, -86, -70, -2, -1];
  for (const at of offsets) {
    flipBit(file, at);
    const result = await home.here(['restore', '--dry-run', 'bad.db']);
    expect({ at, code: result.code, stdout: result.stdout }).toEqual({ at, code: 5, stdout: '' });
    if (at >= 5_000 || at < 0) expect(result.stderr).toContain('is damaged');
    if (at >= -85 && at < 0) expect(result.stderr).toContain('its digest does not match');
  }
});

test('other programs can use a backup as a database, and a file without a digest is restored with a warning', async () => {
  copyWithoutDigest(home.path('copied.db'));
  expect(new Database(backup, { readonly: true }).prepare('SELECT name FROM keys').pluck().all()).toEqual(['old']);
  const result = await home.here(['restore', '--dry-run', 'copied.db']);
  expect(result.code).toBe(0);
  expect(result.stderr).toMatch(/^warning: copied\.db has no digest, .+\ntry: .+\nThe backup is sound/);
  const asJson = await home.here(['restore', '--dry-run', 'copied.db', '--json']);
  expect(asJson.json()).toMatchObject({ warnings: [expect.stringContaining('no digest')] });
});

test('restore - reads the output of backup -, completely or not at all', async () => {
  const rankd = `'${process.execPath}' '${binary}'`;
  const elsewhere = home.path('elsewhere');
  const piped = await home.shell(
    `set -o pipefail; ${rankd} backup - | ${rankd} restore -y --data-dir '${elsewhere}' -`,
  );
  expect(piped).toMatchObject({ code: 0, stdout: expect.stringMatching(/^file +-$/m) });
  expect(await keyNames(elsewhere)).toEqual(['old', 'new']);
  const cut = await home.shell(`head -c 30000 backup.db | ${rankd} restore -y -`);
  expect(cut).toMatchObject({ code: 5, stdout: '' });
  expect(cut.stderr).toMatch(/^error: standard input is damaged( \(.+\))?; nothing was changed\.\ntry: .+\n$/);
  expect(await keyNames()).toEqual(['old', 'new']);
  expect(readdirSync(home.dataDir).filter((name) => name.startsWith('rankd-scratch'))).toEqual([]);
  const typed = new TerminalIo(home);
  expect(await runProgram(['restore', '-'], typed)).toBe(2);
  expect(typed.err).toContain('try: rankd restore rankd-backup.db');
});

test('a restore from the database itself is refused', async () => {
  const result = await home.here(['restore', database, '-y']);
  expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('is the database itself') });
});

/** Copies the backup without the digest at its end, as if another program had made the copy. */
function copyWithoutDigest(file: string): void {
  copyFileSync(backup, file);
  truncateSync(file, statSync(file).size - (statSync(file).size % 512));
}

function cutOff(file: string): void {
  copyWithoutDigest(file);
  truncateSync(file, 40_960);
}

function overwritePage(file: string): void {
  copyWithoutDigest(file);
  const descriptor = openSync(file, 'r+');
  writeSync(descriptor, Buffer.alloc(8_192, 0xff), 0, 8_192, 40_960);
  closeSync(descriptor);
}

function addDanglingEntry(file: string): void {
  copyWithoutDigest(file);
  const db = new Database(file);
  db.pragma('foreign_keys = OFF');
  db.exec("INSERT INTO whitelist (key_id, place_id, active, note, added_at) VALUES ('nobody', 1, 1, '', 0)");
  db.close();
}

function changeSchema(file: string, sql: string): void {
  copyWithoutDigest(file);
  new Database(file).exec(sql).close();
}

function flipBit(file: string, at: number): void {
  const bytes = readFileSync(backup);
  const index = at < 0 ? bytes.length + at : at;
  bytes.writeUInt8(bytes.readUInt8(index) ^ 1, index);
  writeFileSync(file, bytes);
}

function upgradeSchema(file: string, steps: number): void {
  copyWithoutDigest(file);
  const db = new Database(file);
  db.pragma(`user_version = ${steps + 1}`);
  db.prepare('INSERT INTO schema_steps (version, rankd, at) VALUES (?, ?, 0)').run(steps + 1, '9.8.7');
  db.close();
}
