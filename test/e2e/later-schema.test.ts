import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { migrations as postgresSteps } from '../../src/stores/postgres/schema/migrations.ts';
import { migrations } from '../../src/stores/sqlite/schema/migrations.ts';
import { BuiltSession } from '../support/built-session.ts';
import type { CopyOfRankd } from '../support/copy-of-rankd.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { buildLaterRankd } from '../support/later-rankd.ts';
import { onServer, postgresDatabase } from '../support/postgres-database.ts';
import { CliHome } from '../support/run-cli.ts';

/** Runs two versions of rankd on one database: this version, and one that needs the next schema. */

let later: CopyOfRankd;
beforeAll(async () => {
  later = await buildLaterRankd();
});
afterAll(() => later[Symbol.dispose]());

interface Scene {
  home: CliHome;
  env: Record<string, string>;
  place: string;
  schema: number;
  schemaNow(): Promise<number>;
  copy: string | null;
}

const engines = {
  SQLite: async (): Promise<Scene> => {
    const home = newHome();
    const place = join(home.dataDir, 'rankd.db');
    const schemaNow = async () => {
      const db = new Database(place, { readonly: true });
      try {
        return db.pragma('user_version', { simple: true }) as number;
      } finally {
        db.close();
      }
    };
    const schema = migrations.length;
    return { home, env: {}, place, schema, schemaNow, copy: `${place}.before-v${schema + 1}` };
  },
  PostgreSQL: async (): Promise<Scene> => {
    const { url, address } = await postgresDatabase('empty');
    const place = `${address.database} on 127.0.0.1:${address.port}`;
    const schemaNow = async () => {
      const [row] = await onServer(address, 'SELECT max(version) AS newest FROM rankd.schema_steps');
      return Number(row?.['newest']);
    };
    return {
      ...{ home: newHome(), env: { RANKD_STORE_URL: url }, place },
      ...{ schema: postgresSteps.length, schemaNow, copy: null },
    };
  },
};

function newHome(): CliHome {
  const home = new CliHome();
  onTestFinished(() => home[Symbol.dispose]());
  return home;
}

describe.each(Object.entries(engines))('on %s', (engine, open) => {
  const isServer = engine === 'PostgreSQL';

  test('while an older daemon is running, only db migrate of a later rankd migrates, and then the daemon stops with 78', async () => {
    const { home, env, place, schema, schemaNow } = await open();
    await using daemon = await DaemonProcess.start(home, { env });
    const elsewhere = isServer ? newHome() : home;
    await using session = new BuiltSession(elsewhere, env, join(later.dist, 'main.js'));
    const run = (...args: string[]) => session.run(args);

    for (const line of ['key list', 'audit verify', 'serve']) {
      const { code, stdout, stderr } = await run(...line.split(' '));
      const isBeside = line === 'serve' && !isServer;
      const why = isBeside
        ? `A rankd daemon is already running on ${home.dataDir}`
        : `The database ${place} has schema ${schema}, this rankd needs ${schema + 1}, and other rankd processes are using it.\ntry: stop them and try again, or run \`rankd db migrate\``;
      expect({ line, code, stdout }).toEqual({ line, code: 4, stdout: '' });
      expect(stderr).toContain(`error: ${why}`);
    }
    const readable = isServer ? ['db check'] : ['db check', 'backup copy.db'];
    for (const line of readable)
      expect({ line, code: (await run(...line.split(' '))).code }).toEqual({ line, code: 0 });
    const besideDaemon = await home.run(['status', '--json'], { env, script: later.binary });
    expect(besideDaemon.json()).toMatchObject({
      status: { state: 'running', pid: daemon.process.pid },
      warnings: [expect.stringContaining('other rankd processes are using it')],
    });
    const tried = await run('db', 'migrate', '--dry-run', '--json');
    expect(tried.json()).toMatchObject({ migration: { from: schema, to: schema + 1, dryRun: true } });
    expect(await schemaNow()).toBe(schema);
    expect((await fetch(`${daemon.url}/readyz`)).status).toBe(200);

    const stopped = new Promise((resolve) => daemon.process.once('exit', resolve));
    const migrated = await run('db', 'migrate');
    expect(migrated.code).toBe(0);
    expect(migrated.stderr).toContain(`The database ${place} was migrated from schema ${schema} to ${schema + 1}; `);
    expect(await stopped).toBe(78);
    expect(daemon.log).toContain(`A newer rankd has changed the database ${place}`);
    expect(await schemaNow()).toBe(schema + 1);
    const again = await run('db', 'migrate', '--dry-run', '--json');
    expect(again.json()).toMatchObject({ migration: { from: schema + 1, to: schema + 1, copy: null } });
    const old = await home.here(['key', 'list'], { env });
    expect(old).toMatchObject({ code: 78, stdout: '' });
  });

  test('without a daemon, the first command of a later rankd migrates, and reports that and the copy in one line', async () => {
    const { home, env, place, schema, schemaNow, copy } = await open();
    const message = `The database ${place} was migrated from schema ${schema} to ${schema + 1}; ${copy === null ? 'rankd made no copy of it' : `a copy from before the migration is ${copy}`}.\n`;
    await home.here(['key', 'create', 'game'], { env });
    await using session = new BuiltSession(home, env, join(later.dist, 'main.js'));
    await home.run(['__complete', 'key', 'show', ':'], { env, script: later.binary });
    expect(await schemaNow()).toBe(schema);
    const backup = isServer ? undefined : await session.run(['backup', 'older.db', '--json']);
    if (backup !== undefined) expect(backup.json()).toMatchObject({ backup: { schema } });
    const first = await session.run(['key', 'list', '-q']);
    expect({ code: first.code, stderr: first.stderr }).toEqual({ code: 0, stderr: message });
    const second = await session.run(['key', 'list']);
    expect({ code: second.code, stderr: second.stderr }).toEqual({ code: 0, stderr: '' });
    if (copy !== null) expect(existsSync(copy)).toBe(true);
  });
});

test('with --json, a command or daemon reports a migration as a line of JSON on stderr', async () => {
  const { home, place, schema, copy } = await engines.SQLite();
  const line = `{"v":1,"migration":{"database":"${place}","from":${schema},"to":${schema + 1},"copy":"${copy}"}}\n`;
  await home.here(['key', 'create', 'game']);
  const older = readFileSync(place);
  const { stdout, stderr } = await home.run(['key', 'list', '--json'], { script: later.binary });
  expect(JSON.parse(stdout)).toMatchObject({ keys: [{ name: 'game' }] });
  expect(stderr).toBe(line);
  const other = newHome();
  mkdirSync(other.dataDir, { mode: 0o700 });
  writeFileSync(join(other.dataDir, 'rankd.db'), older, { mode: 0o600 });
  const daemon = other.start(['serve', '--port', '0', '--json'], { script: later.binary });
  let log = '';
  daemon.stderr.on('data', (chunk) => {
    log += chunk;
  });
  await new Promise((resolve) => daemon.stdout.once('data', resolve));
  daemon.kill('SIGKILL');
  expect(log).toContain(line.replaceAll(home.dataDir, other.dataDir));
  expect(readdirSync(other.dataDir)).toContain(`rankd.db.before-v${schema + 1}`);
});

test('on PostgreSQL, db migrate --dry-run prints the command to dump the database', async () => {
  const { url, address } = await postgresDatabase('empty'); // not shared: other tests can't use the next schema
  const home = newHome();
  expect((await home.here(['key', 'create', 'game'], { env: { RANKD_STORE_URL: url } })).code).toBe(0);
  const db = (...args: string[]) =>
    home.run(['db', 'migrate', ...args], { env: { RANKD_STORE_URL: url }, script: later.binary });
  const { user, port, database } = address;
  const dump = `rankd makes no backup of a PostgreSQL database before a migration. Dump it before you migrate it, so that you can restore it:
pg_dump --format=custom --no-unlogged-table-data --file=rankd.dump --schema=rankd postgres://${user}@127.0.0.1:${port}/${database}
`;
  const tried = 'The migration succeeded and was rolled back; the database is unchanged.\n';
  expect(await db('--dry-run')).toMatchObject({ code: 0, stderr: tried + dump });
  const schema = postgresSteps.length;
  const migrated = await db();
  expect(migrated).toMatchObject({ code: 0, stderr: expect.stringContaining('rankd made no copy of it.\n') });
  expect(migrated.stderr).not.toContain('pg_dump');
  expect(migrated.stdout).toMatch(new RegExp(`^from +${schema}\\nto +${schema + 1}$`, 'm'));
});
