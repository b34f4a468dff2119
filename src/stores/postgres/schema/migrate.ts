import { RankdError } from '../../../base/errors.ts';
import { placeOf, type ServerAddress } from '../../../base/net.ts';
import { version as rankdVersion } from '../../../base/version.ts';
import type { Clock } from '../../../ports/index.ts';
import type { Reader } from '../../sql/database.ts';
import { newWorkspace } from '../../sql/workspace.ts';
import type { Database, Transaction } from '../engine/database.ts';
import { migrations } from './migrations.ts';

/**
 * Creates rankd's schema, or migrates it to the newest version, in a single transaction; with `isTrial`, rolls it back.
 * If several processes do this at once, only one migrates. Resolves with true if this call migrated the database.
 * Throws the same errors as `schemaVersion`.
 */
export async function migrate(db: Database, clock: Pick<Clock, 'now'>, { isTrial = false } = {}): Promise<boolean> {
  if ((await schemaVersion(db, db.address)) >= newestSchema) return false;
  const trial = new Error('this trial is rolled back');
  try {
    return await db.underLock(async (transaction) => {
      const from = await schemaVersion(transaction, db.address);
      if (from >= newestSchema) return false;
      await migrateWithin(transaction, { from, clock });
      if (isTrial) throw trial;
      return true;
    });
  } catch (error) {
    if ((error as Error).cause !== trial && error !== trial) throw error;
    return false;
  }
}

export async function migrateWithin(
  transaction: Transaction,
  { from, clock }: { from: number; clock: Pick<Clock, 'now'> },
): Promise<void> {
  if (from === 0) transaction.runText('CREATE SCHEMA rankd');
  for (const [index, { sql, livesWith }] of migrations.entries()) {
    if (index < from) continue;
    transaction.runText(sql);
    transaction.run('INSERT INTO rankd.schema_steps VALUES (@version, @livesWith, @rankd, @at)', {
      ...{ version: index + 1, livesWith, rankd: rankdVersion, at: clock.now() },
    });
  }
  if (from === 0) transaction.run(...newWorkspace(transaction.sql, clock));
  await transaction.get('SELECT 1 AS done FROM rankd.workspace');
}

export const newestSchema = migrations.length;

/**
 * Resolves with the number of migrations applied to the database; 0 if it has no `rankd` schema. Throws
 * `config_invalid` if rankd did not create that schema, and `schema_newer` if it requires a newer version of rankd.
 */
export async function schemaVersion(db: Reader, address: ServerAddress): Promise<number> {
  const found = await db.get<{ hasSchema: boolean; hasSteps: boolean }>(
    `SELECT to_regnamespace('rankd') IS NOT NULL AS "hasSchema", to_regclass('rankd.schema_steps') IS NOT NULL AS "hasSteps"`,
  );
  if (!found?.hasSchema) return 0;
  if (!found.hasSteps) throw notFromRankd(address);
  const step = await db.get<{ version: number; livesWith: number; rankd: string }>(
    `SELECT version, lives_with AS "livesWith", rankd FROM rankd.schema_steps ORDER BY version DESC LIMIT 1`,
  );
  if (step === undefined) throw notFromRankd(address);
  if (step.livesWith > newestSchema) throw schemaNewer(step, address);
  return step.version;
}

function notFromRankd(address: ServerAddress): RankdError {
  const message = `The schema rankd in ${placeOf(address)} was not created by rankd; it was not changed.`;
  return new RankdError('config_invalid', message, { hint: 'point store.url at a different database' });
}

function schemaNewer({ version, rankd }: { version: number; rankd: string }, address: ServerAddress): RankdError {
  return new RankdError(
    'schema_newer',
    `The database ${placeOf(address)} has schema ${version}, written by rankd ${rankd}; this is rankd ${rankdVersion}, which supports schemas up to ${newestSchema}.`,
    { hint: `run rankd ${rankd} or a later one instead` },
  );
}

/**
 * Lists the missing tables and indexes, and the missing or disabled triggers, out of those that the migrations up to
 * `version` create.
 */
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
  const tables = sql.matchAll(/CREATE (?:UNLOGGED )?TABLE (?:rankd\.)?(\w+)|CREATE (?:UNIQUE )?INDEX (\w+)/g);
  const triggers = sql.matchAll(/CREATE TRIGGER (\w+) [A-Z ]+ ON rankd\.(\w+)/g);
  return [
    ...[...tables].map(([, table, index]) => String(table ?? index)),
    ...[...triggers].map(([, trigger, table]) => `${trigger} on ${table}`),
  ];
}
