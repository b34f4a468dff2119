import Database from 'better-sqlite3';
import type { Connection } from '../engine/connection.ts';
import { migrations } from './migrations.ts';

/** A table, an index, a trigger or a view, with the statement that made it. */
interface SchemaObject {
  type: string;
  name: string;
  sql: string | null;
}

/** Differences from the schema of the migrations up to `version`, e.g. a dropped trigger. */
export function schemaFlaws(db: Connection, version: number): string[] {
  const found = byName(db.all<SchemaObject>(objectsSql));
  const made = byName(madeByMigrations(version));
  const names = [...new Set([...made.keys(), ...found.keys()])];
  return names.flatMap((name) => {
    const [before, now] = [made.get(name), found.get(name)];
    if (before?.sql === now?.sql && before?.type === now?.type) return [];
    const what = before === undefined ? 'does not belong there' : now === undefined ? 'is missing' : 'was changed';
    return [`${(now ?? before)?.type} ${name} ${what}`];
  });
}

/** SQLite makes the ones with names of its own. */
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
