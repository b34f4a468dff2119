import { placeOf } from '../../../base/net.ts';
import { usedByOthers } from '../../schema-errors.ts';
import type { Database } from '../engine/database.ts';
import { endAfterMs } from '../failure-detector.ts';
import { beatEveryMs, type LeaseClock } from '../nodes.ts';
import { schemaVersion } from './migrate.ts';

/**
 * Resolves with the database's schema version. Throws `conflict` if it is older than `newest` and another node is using
 * the database, because a migration would stop that node. A node is gone once its beat has not changed for
 * `endAfterMs`; `predecessor` is known to be gone.
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
