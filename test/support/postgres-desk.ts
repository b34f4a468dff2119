import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import type { ServerAddress } from '../../src/base/net.ts';
import { openPostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import { Authority } from './certificates.ts';
import { ManualClock } from './manual-clock.ts';
import { startPostgres } from './postgres.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The path of the socket on which tests request PostgreSQL databases. */
    postgresDesk: string;
  }
}

/**
 * Provides PostgreSQL databases for a test run. Starts a server at the first request, and stops it after the run. If
 * `RANKD_TEST_POSTGRES` is the URL of a running server, uses that instead; its user must be a superuser.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const dir = mkdtempSync(join(tmpdir(), 'rankd-desk-'));
  const desk = join(dir, 'desk.sock');
  const closers = new AsyncDisposableStack();
  let databases: Promise<Databases> | undefined;
  const server = createServer((socket) => {
    socket.on('error', () => undefined); // a test worker may end without closing its socket
    let answered: Promise<unknown> = Promise.resolve();
    createInterface({ input: socket }).on('line', (line) => {
      databases ??= openDatabases(closers);
      const answer = databases
        .then((found) => found.serve(JSON.parse(line)))
        .catch((error) => ({ error: String(error.stack) }));
      // responds in the order of the requests
      answered = answered.then(async () => socket.write(`${JSON.stringify(await answer)}\n`));
    });
  });
  await new Promise<void>((resolve) => server.listen(desk, resolve));
  project.provide('postgresDesk', desk);
  return async () => {
    await closers.disposeAsync();
    closeNow(server);
    rmSync(dir, { recursive: true, force: true });
  };
}

function closeNow(server: Server): void {
  server.close();
  server.unref();
}

/** A test's request to create a database (with rankd's schema, or empty) or to return a migrated one. */
export type DeskRequest = { make: 'migrated' | 'empty' } | { release: string };
/** `password` is separate, because an address has it as a function, which JSON can't represent. */
export type DeskAnswer =
  | { address: ServerAddress; password?: string | undefined; authority: string }
  | { done: true }
  | { error: string };

interface Databases {
  serve(request: DeskRequest): Promise<DeskAnswer>;
}

async function openDatabases(closers: AsyncDisposableStack): Promise<Databases> {
  const { RANKD_TEST_POSTGRES: running } = process.env;
  const authority = new Authority();
  const server =
    running === undefined
      ? addressOf(closers.use(await startPostgres({ tls: authority.issue({ name: 'localhost' }) })))
      : addressIn(new URL(running));
  const { tls, password, ...place } = server;
  const credentials = { ...place, password: password?.() };
  const admin = new pg.Client({ ...credentials, ssl: tls && {} });
  admin.on('error', () => undefined); // the server may end first
  await admin.connect();
  if (running === undefined) await admin.query(`CREATE ROLE guarded SUPERUSER LOGIN PASSWORD 'geheim'`);
  const run = `rankd_test_${process.pid}`;
  const template = { ...server, database: `${run}_template` };
  await admin.query(`CREATE DATABASE ${template.database}`);
  const store = await openPostgresStore({ address: template, clock: new ManualClock() });
  await store.close();
  let originalSchema: string | undefined;
  const clients = new Map<string, pg.Client>();
  const answer = (database: string) => {
    return { address: { ...server, database }, password: password?.(), authority: authority.pem };
  };
  const idle: string[] = [];
  let count = 0;
  closers.defer(async () => {
    await Promise.all([...clients.values()].map((client) => client.end()));
    // our own server is removed with all of its data
    const names = running === undefined ? [] : [...clients.keys(), template.database];
    for (const name of names) await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    await admin.end();
  });
  let lastCreation: Promise<unknown> = Promise.resolve();
  const newName = () => {
    count += 1;
    return `${run}_${count}`;
  };
  const connect = async (database: string): Promise<void> => {
    const client = new pg.Client({ ...credentials, database, ssl: tls && {} });
    client.on('error', () => undefined); // the server may end first
    await client.connect();
    clients.set(database, client);
  };
  const make = async (like: string): Promise<string> => {
    const database = newName();
    // one at a time, because most of them copy the same template
    const creation = lastCreation.then(() => admin.query(`CREATE DATABASE ${database} ${like}`));
    lastCreation = creation.catch(() => undefined);
    await creation;
    await connect(database);
    return database;
  };
  /**
   * Renames a returned database. A daemon that outlives its test reconnects, and would otherwise write into the next
   * test's data.
   */
  const rename = async (database: string): Promise<string> => {
    const renamed = newName();
    await clients.get(database)?.end();
    await admin.query(`ALTER DATABASE ${database} ALLOW_CONNECTIONS false`);
    await admin.query(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '${database}'`);
    await admin.query(`ALTER DATABASE ${database} RENAME TO ${renamed}`);
    clients.delete(database);
    await admin.query(`ALTER DATABASE ${renamed} ALLOW_CONNECTIONS true`);
    await connect(renamed);
    return renamed;
  };
  return {
    async serve(request) {
      if ('release' in request) {
        const database = await rename(request.release);
        const client = clients.get(database);
        await client?.query(emptyDatabaseSql);
        if ((await describeSchema(client)) === originalSchema) idle.push(database);
        return { done: true };
      }
      if (request.make === 'empty') return answer(await make(''));
      const database = idle.pop() ?? (await make(`TEMPLATE ${template.database} STRATEGY file_copy`));
      originalSchema ??= await describeSchema(clients.get(database));
      return answer(database);
    },
  };
}

/** Empties a database, which is ten times as fast as creating one. */
const emptyDatabaseSql = `
  SET session_replication_role = replica;
  DO $$ DECLARE t regclass; BEGIN
    FOR t IN SELECT oid::regclass FROM pg_class WHERE relnamespace = 'rankd'::regnamespace AND relkind = 'r'
      AND relname NOT IN ('schema_steps', 'workspace', 'access_version', 'audit_anchor')
    LOOP EXECUTE 'DELETE FROM ' || t; END LOOP;
  END $$;
  UPDATE rankd.workspace SET id = 'ws_' || left(md5(random()::text), 12), name = 'default', plan = 'top', active = true, created_at = ${new ManualClock().now()};
  INSERT INTO rankd.audit_head (last_id, hash) VALUES (0, decode(repeat('00', 32), 'hex'));
  UPDATE rankd.audit_anchor SET last_id = 0, hash = decode(repeat('00', 32), 'hex');
  SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relnamespace = 'rankd'::regnamespace AND relkind = 'S';
  RESET session_replication_role`;

/** Returns a description of a database's schema. The desk does not reuse a database with an altered schema. */
async function describeSchema(client: pg.Client | undefined): Promise<string | undefined> {
  return (await client?.query(schemaSql))?.rows[0]?.shape;
}

const schemaSql = `
  SELECT string_agg(thing, E'\\n' ORDER BY thing) AS shape FROM (
    SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp'
    UNION ALL SELECT 'relation ' || oid::regclass || coalesce(reloptions::text, '') FROM pg_class WHERE relnamespace = 'rankd'::regnamespace
    UNION ALL SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = 'rankd'
    UNION ALL SELECT 'column ' || a.attrelid::regclass || a.attname || format_type(atttypid, atttypmod) || attnotnull || coalesce(pg_get_expr(adbin, adrelid), '')
      FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
      WHERE relnamespace = 'rankd'::regnamespace AND attnum > 0
    UNION ALL SELECT 'constraint ' || conrelid::regclass || conname || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'rankd'::regnamespace
    UNION ALL SELECT 'trigger ' || tgrelid::regclass || tgname || tgenabled::text FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT 'function ' || oid::regprocedure || prosrc FROM pg_proc WHERE pronamespace = 'rankd'::regnamespace
    UNION ALL SELECT 'setting ' || setconfig::text FROM pg_db_role_setting WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
    UNION ALL SELECT 'step ' || s::text FROM rankd.schema_steps AS s
  ) AS things (thing)`;

function addressOf({ socketDir, port, user }: { socketDir: string; port: number; user: string }): ServerAddress {
  return { host: socketDir, port, user, database: 'postgres', tls: false };
}

function addressIn({ hostname, port, username, password, pathname, searchParams }: URL): ServerAddress {
  return {
    host: searchParams.get('host') ?? decodeURIComponent(hostname),
    port: Number(port || 5432),
    user: decodeURIComponent(username),
    password: () => decodeURIComponent(password),
    database: decodeURIComponent(pathname.slice(1)),
    tls: false,
  };
}
