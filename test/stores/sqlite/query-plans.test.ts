import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Store } from '../../../src/ports/index.ts';
import { Connection } from '../../../src/stores/sqlite/engine/connection.ts';
import { SqliteDatabase } from '../../../src/stores/sqlite/engine/database.ts';
import { Statements } from '../../../src/stores/sqlite/engine/statements.ts';
import { migrate } from '../../../src/stores/sqlite/schema/migrate.ts';
import { createSqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts';
import { begin, newDemotion } from '../../contracts/store/samples.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { tempDir } from '../../support/temp-dir.ts';

test('the last write for a member is found by a separate index', async () => {
  const byIndex = ['SEARCH main.rank_changes USING INDEX written_to_a_member (rankee_id=?)'];
  expect(await plansOf((store) => store.lastWritten(7))).toEqual(byIndex);
  expect(await plansOf((store) => store.lastAppliedAt(7))).toEqual(byIndex);
});

test('the breaker reads only changes within its window', async () => {
  const change = newDemotion(7);
  const limit = { since: 0, byKey: 1, byAll: 1 };
  const limits = [
    { ...limit, of: 'demotions' as const },
    { ...limit, of: { fromRank: 20 } },
  ];
  expect(await plansOf((store) => begin(store, change, { after: undefined, limits }))).toEqual(
    expect.arrayContaining([
      'SEARCH main.rank_changes USING INDEX demotions (requested_at>? AND requested_at<?)',
      'SEARCH main.rank_changes USING INDEX changes_by_time (requested_at>? AND requested_at<?)',
    ]),
  );
});

test('names of linked users are read only from their own changes', async () => {
  const plans = await plansOf((store) => store.linkedNames([7]));
  expect(plans.filter((plan) => /rank_changes|TEMP B-TREE/.test(plan))).toEqual([
    'SEARCH main.rank_changes USING INDEX changes_of_a_member (rankee_id=?)',
    'SEARCH main.rank_changes USING INDEX changes_asked_by (ranker_id=?)',
    'USE TEMP B-TREE FOR ORDER BY', // sorts only the rows found by the two indexes
  ]);
});

/**
 * Returns SQLite's query plans for the reads that `ask` makes. A `SCAN` reads a whole table, and a `TEMP B-TREE` sorts.
 */
async function plansOf(ask: (store: Store) => Promise<unknown>): Promise<string[]> {
  const clock = new ManualClock();
  const file = join(tempDir(), 'rankd.db');
  writeFileSync(file, '');
  const db = new Connection(file);
  onTestFinished(() => db.close());
  migrate(db, clock);
  const prepared = vi.spyOn(Statements.prototype, 'prepare');
  await ask(createSqliteStore(new SqliteDatabase(db), clock));
  const reads = prepared.mock.calls.map(([sql]) => sql).filter((sql) => /^\s*SELECT/.test(sql));
  prepared.mockRestore();
  const plans = reads.map((sql) => db.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`));
  return plans.flat().map(({ detail }) => detail);
}
