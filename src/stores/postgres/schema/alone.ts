import { placeOf } from '../../../base/net.ts';
import { usedByOthers } from '../../schema-errors.ts';
import type { Database } from '../engine/database.ts';
import { endAfterMs } from '../failure-detector.ts';
import { beatEveryMs, type LeaseClock } from '../nodes.ts';
import { schemaVersion } from './migrate.ts';

/**
 * Resolves with the database's schema. Throws `conflict` if the database has an older schema than `newest` and another node works on it, which a migration would stop. A node whose
 * number stands still for as long as it takes to end it is gone; that of `predecessor` is known to be.
 */
export async function requireAlone(
  db: Database,
  { own, newest, predecessor = '' }: { own: LeaseClock; newest: number; predecessor?: string | undefined },
): Promise<number> {
  const version = await schemaVersion(db, db.address);
  if (version === 0 || version >= newest) return version;
  const first = await aliveNodes(db, predecessor);
  const since = own.monotonic();
  while (first.size > 0 && own.monotonic() - since <= endAfterMs) {
    await own.sleep(beatEveryMs);
    const now = await aliveNodes(db, predecessor);
    const isAlive = [...now].some(([id, beat]) => first.has(id) && first.get(id) !== beat);
    if (isAlive) throw usedByOthers(placeOf(db.address), { version, newest });
    for (const id of first.keys()) if (!now.has(id)) first.delete(id);
  }
  return version;
}

async function aliveNodes(db: Database, predecessor: string): Promise<Map<string, number>> {
  const query = 'SELECT id, beat FROM rankd.nodes WHERE ended_by IS NULL AND id <> @predecessor';
  const rows = await db.all<{ id: string; beat: number }>(query, { predecessor });
  return new Map(rows.map(({ id, beat }) => [id, beat]));
}
