import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { RankdError } from '../../../base/errors.ts';
import { thisSystem } from '../../../base/system.ts';
import { version as rankdVersion } from '../../../base/version.ts';
import type { Connection } from '../engine/connection.ts';
import { notRankdDatabase } from '../engine/sqlite-error.ts';
import { migrations } from './migrations.ts';

/** "rnkd" in ASCII, stored in the file header (https://sqlite.org/fileformat.html#application_id). */
export const applicationId = 0x726e6b64;

/**
 * Returns the number of migrations applied to the database. Throws `config_invalid` if the file is not a rankd
 * database, and `schema_newer` if a newer version of rankd migrated it.
 */
export function schemaVersion(db: Connection, newestKnown: number): number {
  const { id, version, objects } = db.get<{ id: number; version: number; objects: number }>(headerSql) ?? emptyHeader;
  if (id === 0 && version === 0 && objects === 0) return 0;
  if (id !== applicationId) throw notRankdDatabase(db.file);
  if (version > newestKnown) throw schemaNewer(db, { version, newestKnown });
  return version;
}

/** Returns the path of the copy made before a database is migrated to `schema`. */
export function copyPathBefore(file: string, schema: number): string {
  return `${file}.before-v${schema}`;
}

function schemaNewer(db: Connection, { version, newestKnown }: { version: number; newestKnown: number }): RankdError {
  const writer = writerOf(db, version);
  const copy = copyPathBefore(db.file, version);
  const restoreHint = existsSync(copy)
    ? `, or restore the copy from before: rankd restore ${thisSystem.quote(copy)}`
    : '';
  return new RankdError(
    'schema_newer',
    `The database ${db.file} has schema ${version}, written by ${writer ?? 'a newer rankd'}; this is rankd ${rankdVersion}, which supports schemas up to ${newestKnown}.`,
    { hint: `run ${writer ?? 'that version'} or a later one instead${restoreHint}` },
  );
}

/** Returns the version of rankd that migrated the database to this schema, or `undefined` if it can't be read. */
function writerOf(db: Connection, version: number): string | undefined {
  try {
    const row = db.get<{ rankd: string }>('SELECT rankd FROM schema_steps WHERE version = @version', { version });
    return row === undefined ? undefined : `rankd ${row.rankd}`;
  } catch {
    return undefined; // only an error message needs the version
  }
}

const headerSql = `
  SELECT (SELECT application_id FROM pragma_application_id) AS id,
         (SELECT user_version FROM pragma_user_version) AS version,
         (SELECT count(*) FROM sqlite_schema) AS objects`;

const emptyHeader = { id: 0, version: 0, objects: 0 };

/** A table, index, trigger or view, with the SQL that created it. */
interface SchemaObject {
  type: string;
  name: string;
  sql: string | null;
}

/** Describes each difference from the schema that the migrations up to `version` create, such as a dropped trigger. */
export function schemaFlaws(db: Connection, version: number): string[] {
  const found = byName(db.all<SchemaObject>(objectsSql));
  const made = byName(madeByMigrations(version));
  const names = [...new Set([...made.keys(), ...found.keys()])];
  return names.flatMap((name) => {
    const [before, now] = [made.get(name), found.get(name)];
    if (before?.sql === now?.sql && before?.type === now?.type) return [];
    const what =
      before === undefined ? "is not part of rankd's schema" : now === undefined ? 'is missing' : 'was changed';
    return [`${(now ?? before)?.type} ${name} ${what}`];
  });
}

/** Excludes objects with reserved names, which SQLite itself creates. */
const objectsSql =
  "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";

function madeByMigrations(version: number): SchemaObject[] {
  const database = new Database(':memory:');
  try {
    for (const migration of migrations.slice(0, version)) database.exec(migration);
    return database.prepare(objectsSql).all() as SchemaObject[];
  } finally {
    database.close();
  }
}

function byName(objects: SchemaObject[]): Map<string, SchemaObject> {
  return new Map(objects.map((object) => [object.name, object]));
}
