import { statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { codeOf, RankdError } from '../../../base/errors.ts';
import type {
  Clock,
  Names,
  NamesQuery,
  StoreCheck,
  StoredRole,
  StoreOperations,
  StoreReport,
} from '../../../ports/index.ts';
import type { Connection } from '../engine/connection.ts';
import { schemaFlaws } from '../schema/schema-version.ts';
import { backUp, streamBackup } from './backup.ts';
import { acquireDaemonLock, isDaemonRunning } from './daemon-lock.ts';
import { examine, newestSchema } from './examine.ts';
import { databaseName, hasDatabase, onExisting } from './existing.ts';
import { examineBackup, migrateDatabase, restoreBackup, tryMigration } from './restore.ts';

/** The operations on the database of a data directory. */
export function sqliteOperations({ dataDir, clock }: { dataDir: string; clock: Clock }): StoreOperations {
  return {
    exists: async () => hasDatabase(dataDir),
    check: async () => checkDatabase(dataDir),
    serverFacts: async () => undefined,
    server: async () => undefined,
    migrate: async () => migrateDatabase(dataDir, clock),
    tryMigration: async () => tryMigration(dataDir, clock),
    backUp: async (target) => backUp({ dataDir, ...target }),
    streamBackup: (send) => streamBackup(dataDir, send),
    examineBackup: async (file) => examineBackup(file),
    restore: async (request) => ({ kept: restoreBackup({ dataDir, ...request }, clock) }),
    findNames: async (query) => findNames(dataDir, query),
    lockDaemon: () => acquireDaemonLock(dataDir),
    isDaemonRunning: () => isDaemonRunning(dataDir),
  };
}

export function checkDatabase(dataDir: string): StoreReport {
  return onExisting(dataDir, (db) => {
    try {
      return reportOn(db);
    } catch (error) {
      if (!isDamage(error)) throw error;
      const detail = String((error.cause as Error).message);
      return { schema: undefined, newestSchema, checks: [{ name: 'integrity', ok: false, detail }], mend };
    }
  });
}

function reportOn(db: Connection): StoreReport {
  const { schema, rows, damage, danglingRows } = examine(db);
  const checks = [
    found('integrity', damage, 'every page can be read and every index fits'),
    found('references', danglingRows, 'every row refers to rows that exist'),
    found('schema', schemaFlaws(db, schema), `${schema}, the newest this rankd knows is ${newestSchema}`),
    {
      name: 'rows',
      ok: true,
      detail: `${rows.keys} keys, ${rows.whitelist} whitelist entries, ${rows.changes} changes, ${rows.auditEvents} audit events`,
    },
    { name: 'size', ok: true, detail: `${bytesOf(db.file)} bytes, write-ahead log ${bytesOf(`${db.file}-wal`)} bytes` },
  ];
  return { schema, newestSchema, checks, mend };
}

const mend = 'stop the daemon, then restore a backup: rankd restore FILE';

const maxShown = 3;

function found(name: string, flaws: string[], fine: string): StoreCheck {
  if (flaws.length === 0) return { name, ok: true, detail: fine };
  const more = flaws.length > maxShown ? [`and ${flaws.length - maxShown} more`] : [];
  return { name, ok: false, detail: [...flaws.slice(0, maxShown), ...more].join('; ') };
}

function bytesOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function isDamage(error: unknown): error is RankdError {
  return error instanceof RankdError && codeOf(error.cause).startsWith('SQLITE_CORRUPT');
}

/** A longer list would not help the operator to choose. */
const maxNames = 200;
/** How far back the history is searched for names of users. */
const maxChanges = 5000;

/** Reads the database as it is: it creates, migrates and locks nothing. If the database can't be read, there are no names. */
export function findNames(dataDir: string, { placesLike, placesOf, usersLike }: NamesQuery): Names {
  let opened: Database.Database | undefined;
  try {
    const database = new Database(join(dataDir, databaseName), { readonly: true, fileMustExist: true, timeout: 0 });
    opened = database;
    const keys = database.prepare<[], Names['keys'][number]>(
      'SELECT name, mode FROM keys WHERE revoked_at IS NULL ORDER BY name',
    );
    const places = database.prepare<[{ like: string; key: string | null; max: number }], { placeId: number }>(
      `SELECT DISTINCT place_id AS placeId FROM whitelist JOIN keys ON keys.id = key_id
       WHERE CAST(place_id AS TEXT) GLOB @like
         AND CASE WHEN @key IS NULL THEN revoked_at IS NULL ELSE @key IN (keys.id, name) END
       ORDER BY place_id LIMIT @max`,
    );
    const isDigits = /^\d*$/.test(placesLike);
    const found = isDigits ? places.all({ like: `${placesLike}*`, key: placesOf ?? null, max: maxNames }) : [];
    return {
      keys: keys.all(),
      places: found.map(({ placeId }) => placeId),
      roles: rolesOf(database),
      users: usersLike === undefined ? [] : usersOf(database, usersLike),
    };
  } catch {
    return { keys: [], places: [], roles: [], users: [] };
  } finally {
    opened?.close();
  }
}

function rolesOf(database: Database.Database): Names['roles'] {
  return database
    .prepare<[], StoredRole>(
      `SELECT role_id AS id, name, rank FROM group_roles
       WHERE group_title IS (SELECT group_title FROM served_group) OR NOT EXISTS (SELECT 1 FROM served_group)
       ORDER BY group_title, rank, role_id`,
    )
    .all();
}

/** Those that were looked up for the history, and those that an operator typed, which were looked up then. */
function usersOf(database: Database.Database, usersLike: string): string[] {
  const named = database.prepare<[{ like: string; max: number; maxChanges: number }], { name: string }>(
    `SELECT name FROM user_names WHERE name LIKE @like ESCAPE '\\'
     UNION
     SELECT rankee_name FROM (SELECT rankee_name, key_id FROM rank_changes ORDER BY seq DESC LIMIT @maxChanges)
     WHERE key_id IS NULL AND rankee_name LIKE @like ESCAPE '\\' AND rankee_name <> ''
     ORDER BY 1 LIMIT @max`,
  );
  const like = `${usersLike.replaceAll(/[%_\\]/g, '\\$&')}%`;
  return named.all({ like, max: maxNames, maxChanges }).map(({ name }) => name);
}
