import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { migrations } from '../../src/stores/sqlite/schema/migrations.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { CliHome } from '../support/run-cli.ts';

const schema = migrations.length;

let home: CliHome;
let database: string;
beforeEach(async () => {
  home = new CliHome();
  database = join(home.dataDir, 'rankd.db');
});
afterEach(() => home[Symbol.dispose]());

function emptyDatabase(): void {
  mkdirSync(home.dataDir, { mode: 0o700 });
  writeFileSync(database, '', { mode: 0o600 });
}

test('db check lists its checks, even while a daemon is running, and exits with 0', async () => {
  await home.json('key', 'create', 'game');
  const { code, stdout, stderr } = await home.here(['db', 'check']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toBe(
    `    CHECK
ok  integrity   every page is readable and every index is complete
ok  references  all referenced rows exist
ok  schema      ${schema}; this rankd supports schemas up to ${schema}
ok  rows        1 key, 0 whitelisted places, 0 changes, 1 audit event
ok  size        ${statSync(database).size} bytes, write-ahead log 0 bytes
ok  audit       1 event, each linked to the one before
`,
  );
  await using _daemon = await DaemonHere.start(home);
  expect(await home.json('db', 'check')).toMatchObject({
    v: 1,
    ok: true,
    checks: [
      { name: 'integrity', ok: true },
      { name: 'references' },
      { name: 'schema' },
      { name: 'rows' },
      { name: 'size' },
      { name: 'audit', ok: true },
    ],
  });
});

test('db check exits with 5 and prints the fix if rows have dangling references', async () => {
  await home.json('workspace', 'show');
  const db = new Database(database);
  db.pragma('foreign_keys = OFF');
  db.exec("INSERT INTO whitelist (key_id, place_id, active, note, added_at) VALUES ('nobody', 1, 1, '', 0)");
  db.close();
  const { code, stdout, stderr } = await home.here(['db', 'check']);
  expect({ code, stderr }).toEqual({
    code: 5,
    stderr: 'try: stop the daemon, then restore a backup: rankd restore FILE\n',
  });
  expect(stdout).toContain('\nFAIL  references  row ? of whitelist refers to a missing row of keys\n');
});

test('db check exits with 5 if the audit was modified, and names the command for details', async () => {
  for (const name of ['a', 'b', 'c']) await home.json('key', 'create', name);
  const db = new Database(database);
  db.exec('DROP TRIGGER audit_is_never_edited; UPDATE audit_events SET at = 0 WHERE id = 2');
  db.close();
  const { code, stdout, stderr } = await home.here(['db', 'check']);
  expect({ code, stderr }).toEqual({ code: 5, stderr: 'try: rankd audit verify\n' });
  expect(stdout).toMatch(/\nFAIL {2}audit {7}broken: event #2 was changed/);
});

test('db check and doctor exit with 5 if a trigger was dropped, added or changed', async () => {
  await home.json('key', 'create', 'a');
  const db = new Database(database);
  db.exec(`
    DROP TRIGGER audit_is_never_deleted;
    DROP TRIGGER audit_is_never_edited;
    CREATE TRIGGER audit_is_never_edited BEFORE UPDATE ON audit_events WHEN 0 BEGIN SELECT 1; END;
    CREATE TRIGGER mine AFTER INSERT ON keys BEGIN SELECT 1; END`);
  db.close();
  const { code, stdout } = await home.here(['db', 'check']);
  expect(code).toBe(5);
  for (const flaw of [
    'audit_is_never_deleted is missing',
    'audit_is_never_edited was changed',
    "mine is not part of rankd's schema",
  ])
    expect(stdout).toMatch(new RegExp(`FAIL +schema +.*trigger ${flaw}`));
  expect(stdout).toMatch(/ok +audit/);
  expect((await home.here(['doctor', '--offline'])).stdout).toMatch(/FAIL +database +schema: trigger/);
});

test('db check exits with 5 if the file is damaged', async () => {
  await home.json('workspace', 'show');
  const descriptor = openSync(database, 'r+');
  writeSync(descriptor, Buffer.alloc(4_096, 0xff), 0, 4_096, 40_960);
  closeSync(descriptor);
  const { code, stdout } = await home.here(['db', 'check', '--json']);
  expect(code).toBe(5);
  expect(JSON.parse(stdout)).toMatchObject({ v: 1, ok: false });
  expect(stdout).toContain('{"name":"integrity","ok":false');
});

test('every command refuses a database of a newer rankd, and names the required version', async () => {
  const newer = schema + 1;
  await home.json('workspace', 'show');
  const db = new Database(database);
  db.pragma(`user_version = ${newer}`);
  db.exec(`INSERT INTO schema_steps (version, rankd, at) VALUES (${newer}, '9.8.7', 0)`);
  db.close();
  const before = readFileSync(database);
  for (const command of ['db check', 'db migrate', 'db migrate --dry-run', 'backup copy.db', 'key list', 'serve']) {
    const result = await home.here(command.split(' '));
    expect(result).toMatchObject({ code: 78, stdout: '' });
    expect(result.stderr).toBe(
      `error: The database ${database} has schema ${newer}, written by rankd 9.8.7; this is rankd 0.1.0, which supports schemas up to ${schema}.
try: run rankd 9.8.7 or a later one instead
`,
    );
  }
  expect(readFileSync(database).equals(before)).toBe(true);
  writeFileSync(`${database}.before-v${newer}`, '');
  expect((await home.here(['key', 'list'])).stderr).toContain(
    `, or restore the copy from before: rankd restore ${database}.before-v${newer}\n`,
  );
});

test('db migrate reports when there is nothing to do', async () => {
  await home.json('workspace', 'show');
  for (const args of [
    ['db', 'migrate'],
    ['db', 'migrate', '--dry-run'],
  ]) {
    expect(await home.here(args)).toMatchObject({
      code: 0,
      stdout: `FIELD     VALUE\ndatabase  ${database}\nfrom      ${schema}\nto        ${schema}\n`,
      stderr: 'The database already has the newest schema; there is nothing to do.\n',
    });
  }
});

test('db migrate --dry-run migrates a copy and leaves no files; db migrate migrates the database', async () => {
  emptyDatabase();
  const dry = await home.here(['db', 'migrate', '--dry-run', '--json']);
  expect(dry.json()).toEqual({ v: 1, migration: { database, from: 0, to: schema, copy: null, dryRun: true } });
  expect(await home.here(['db', 'migrate', '--dry-run'])).toMatchObject({
    code: 0,
    stderr: 'A copy was migrated and passed all checks; the database is unchanged.\n',
  });
  expect(statSync(database).size).toBe(0);
  expect(readdirSync(home.dataDir)).toEqual(['rankd.db']);
  expect(await home.here(['db', 'migrate'])).toMatchObject({ code: 0, stderr: '' });
  expect(statSync(database).size).toBeGreaterThan(0);
  expect((await home.json('db', 'check'))['ok']).toBe(true);
});

test('db migrate can run while a daemon is running', async () => {
  await using _daemon = await DaemonHere.start(home);
  expect(await home.here(['db', 'migrate'])).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('nothing to do'),
  });
});

test('without a database, db check and db migrate exit with 3 and create none', async () => {
  mkdirSync(home.dataDir);
  chmodSync(home.dataDir, 0o700);
  for (const args of [['check'], ['migrate', '--dry-run']]) {
    expect(await home.here(['db', ...args])).toMatchObject({
      code: 3,
      stdout: '',
      stderr: expect.stringMatching(/^error: There is no rankd database in .+\ntry: .+\n$/),
    });
  }
  expect(readdirSync(home.dataDir)).toEqual([]);
});
