import type { RankdError } from '../../base/errors.ts';
import { refusalOf } from '../../core/access.ts';
import type { RankChange } from '../../core/model.ts';
import type { Connection } from './engine/connection.ts';
import { findKey } from './keys.ts';
import { findEntry } from './whitelist.ts';
import { readWorkspace } from './workspace.ts';

/**
 * The refusal of a change whose key or place was shut out since the key was presented: what has not begun by then does not begin.
 * Called in the transaction that keeps the change.
 */
export function refusalOfAccess(db: Connection, { keyId, placeId }: RankChange, now: number): RankdError | undefined {
  if (keyId === undefined || placeId === undefined || isLetIn(db, { keyId, placeId, now })) return undefined;
  const key = findKey(db, keyId, now);
  if (key === undefined) return undefined;
  const caller = { workspace: readWorkspace(db), key, entry: findEntry(db, keyId, placeId) };
  return refusalOf(caller, { scope: 'rank', placeId, now });
}

/** In one statement, as every change asks it. */
function isLetIn(db: Connection, question: { keyId: string; placeId: number; now: number }): boolean {
  const found = db.get(
    `SELECT 1 FROM keys AS k JOIN whitelist AS e ON e.key_id = k.id AND e.place_id = @placeId JOIN workspace AS w
     WHERE k.id = @keyId AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > @now)
       AND e.active = 1 AND w.active = 1 AND w.plan = 'top'`,
    question,
  );
  return found !== undefined;
}
