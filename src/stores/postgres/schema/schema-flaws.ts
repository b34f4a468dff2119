import type { Reader } from '../engine/database.ts';
import { migrations } from './migrations.ts';

/** The tables, indexes and triggers that the migrations up to `version` made and that are gone, or switched off. */
export async function missingObjects(db: Reader, version: number): Promise<string[]> {
  const rows = await db.all<{ name: string }>(`
    SELECT relname AS name FROM pg_class WHERE relnamespace = to_regnamespace('rankd')
    UNION ALL
    SELECT tgname || ' on ' || relname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
    WHERE relnamespace = to_regnamespace('rankd') AND tgenabled IN ('O', 'A')`);
  const there = new Set(rows.map(({ name }) => name));
  return madeBy(migrations.slice(0, version))
    .filter((name) => !there.has(name))
    .map((name) => `${name} is missing`);
}

function madeBy(steps: typeof migrations): string[] {
  const sql = steps.map((migration) => migration.sql).join('\n');
  const tables = sql.matchAll(/CREATE (?:UNLOGGED )?TABLE rankd\.(\w+)|CREATE (?:UNIQUE )?INDEX (\w+)/g);
  const triggers = sql.matchAll(/CREATE TRIGGER (\w+) [A-Z ]+ ON rankd\.(\w+)/g);
  return [
    ...[...tables].map(([, table, index]) => String(table ?? index)),
    ...[...triggers].map(([, trigger, table]) => `${trigger} on ${table}`),
  ];
}
