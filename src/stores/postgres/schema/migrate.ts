import { version as rankdVersion } from '../../../base/version.ts';
import type { Clock } from '../../../ports/index.ts';
import type { Database, Transaction } from '../engine/database.ts';
import { createWorkspace } from '../workspace.ts';
import { migrations } from './migrations.ts';
import { newestSchema, schemaVersion } from './schema-version.ts';

/**
 * Brings a database to the newest schema, an empty one included, in one transaction. Of several who do this at once, one migrates, and the
 * others find it done. With `isTrial` the transaction is rolled back. Returns whether this call migrated. Throws as `schemaVersion`.
 */
export async function migrate(db: Database, clock: Pick<Clock, 'now'>, { isTrial = false } = {}): Promise<boolean> {
  if ((await schemaVersion(db, db.address)) >= newestSchema) return false;
  const trial = new Error('nothing of this is kept');
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

/** Takes the steps that are missing. */
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
  if (from === 0) createWorkspace(transaction, clock);
  await transaction.get('SELECT 1 AS done FROM rankd.workspace');
}
