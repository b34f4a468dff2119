import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { ChangeFilter, Store } from '../../../src/ports/index.ts';
import { Connection } from '../../../src/stores/sqlite/engine/connection.ts';
import { SqliteDatabase } from '../../../src/stores/sqlite/engine/database.ts';
import { Statements } from '../../../src/stores/sqlite/engine/statements.ts';
import { migrate } from '../../../src/stores/sqlite/schema/migrate.ts';
import { createSqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { TempDir } from '../../support/temp-dir.ts';

/**
 * More changes than one page scans. The oldest 60 are refused changes of Ann_2; the others are changes of Ann_1, or of
 * members whose names begin with Many.
 */
const count = 12_000;
const dir = new TempDir();
let db: Connection;
let store: Store;

beforeAll(() => {
  const file = join(dir.path, 'rankd.db');
  writeFileSync(file, '');
  db = new Connection(file);
  migrate(db, new ManualClock());
  db.run(
    `INSERT INTO rank_changes (id, group_title, state, message, rankee_id, rankee_name, ranker_id, ranker_name, new_rank_id,
                               roles_before, roles_after, phase, key_id, place_id, done_by, dry_run, demotion, privileged, top_rank, requested_at)
     SELECT 'chg_' || value, 'the simulated group', iif(value <= 60, 'refused', 'applied'), '', value % 700,
            CASE WHEN value <= 60 THEN 'Ann_2' WHEN value % 10 = 0 THEN 'Many' || (value % 400) ELSE 'Ann_1' END, value % 3, '', 20, '[1]', '[2]',
            'forward', 'key_main', 42, 'key:key_main', 0, 0, 0, 20, value * 10
     FROM (WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < @count) SELECT value FROM n)`,
    { count },
  );
  store = createSqliteStore(new SqliteDatabase(db), new ManualClock());
});

afterAll(() => {
  db.close();
  dir[Symbol.dispose]();
});

async function search(filter: Omit<ChangeFilter, 'limit'>): Promise<{ ids: string[]; pages: number[] }> {
  const ids: string[] = [];
  const pages: number[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.searchChanges({ ...filter, limit: 1_000, cursor });
    ids.push(...page.changes.map(({ id }) => id));
    pages.push(page.changes.length);
    cursor = page.next;
  } while (cursor !== undefined);
  return { ids, pages };
}

test.each<Omit<ChangeFilter, 'limit'>>([
  { rankeeName: 'ann_' },
  { rankeeName: 'ann_', states: ['refused'] },
  { rankeeName: 'many' },
  { rankerId: 1, keyId: 'key_main' },
  { keyId: 'key_main', states: ['refused', 'failed'] },
  { since: 100, until: 100_000, rankeeName: 'ann_2' },
  { since: 100, placeId: 42, by: 'key' },
])('changes beyond the rows that one page scans are found, once and in order: %j', async (filter) => {
  const changes = await store.listChanges({ ...filter, limit: count });
  expect(changes.length).toBeGreaterThan(0);
  expect((await search(filter)).ids).toEqual(changes.map(({ id }) => id));
});

test('a page without results returns a cursor if there are more rows to scan', async () => {
  const { ids, pages } = await search({ by: 'key', states: ['applied'], rankeeId: 3, placeId: 43 });
  expect(ids).toEqual([]);
  expect(pages.length).toBeLessThan(4);
  const rare = await search({ keyId: 'key_main', group: 'the simulated group', rankeeName: 'ann_2' });
  expect(rare.ids).toHaveLength(60);
});

test('no search scans or sorts the whole table', async () => {
  const searches: Array<Omit<ChangeFilter, 'limit'>> = [
    {},
    { rankeeId: 3 },
    { rankeeName: 'ann_' },
    { rankerId: 1 },
    { keyId: 'key_main' },
    { placeId: 42 },
    { by: 'cli' },
    { states: ['failed', 'refused'] },
    { since: 5, until: 50 },
  ];
  for (const filter of searches) {
    const prepared = vi.spyOn(Statements.prototype, 'prepare');
    await store.searchChanges({ ...filter, limit: 50 });
    const plans = prepared.mock.calls.flatMap(([sql]) => db.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`));
    prepared.mockRestore();
    const details = plans.map(({ detail }) => detail).join('\n');
    expect(details, JSON.stringify(filter)).not.toMatch(
      /SCAN main.rank_changes USING (INDEX|COVERING INDEX) (?!changes_by_member_name)/,
    );
    expect(details, JSON.stringify(filter)).not.toMatch(/TEMP B-TREE FOR ORDER BY$/m);
  }
});
