import type { IdempotencyClaim, IdempotencySlot, IdempotencyStanding, IdempotencyStore } from '../../ports/index.ts';
import { findByIdempotencyKey } from './change-queries.ts';
import type { Database } from './engine/database.ts';
import { hasEnded } from './node-statements.ts';
import type { Nodes } from './nodes.ts';

/** The claims of all nodes. One that has ended has none. */
export function idempotencyStore(db: Database, nodes: Nodes): IdempotencyStore {
  const release = (slot: IdempotencySlot) => db.work(releaseSql, { ...slot, node: nodes.idIfBegun });
  const tryToClaim = async (claim: IdempotencyClaim): Promise<IdempotencyStanding | undefined> => {
    const node = await nodes.id();
    // In this order: a change that another request began before it gave its claim back is seen once the claim is there.
    const [claimed, change, [running]] = await Promise.all([
      db.work(claimSql, { ...claim, node }),
      findByIdempotencyKey(db.behindWork, claim),
      db.work<{ fingerprint: string }>(runningSql, { ...claim }),
    ]);
    if (change !== undefined) {
      if (claimed.length > 0) await release(claim);
      return { is: 'used', change };
    }
    if (claimed.length > 0) return { is: 'claimed' };
    return running && { is: 'running', fingerprint: running.fingerprint };
  };
  return {
    async claimIdempotencyKey(claim) {
      for (;;) {
        const standing = await tryToClaim(claim); // none if the claim of another was given back meanwhile
        if (standing !== undefined) return standing;
      }
    },

    async releaseIdempotencyKey(slot) {
      if (nodes.idIfBegun !== undefined) await release(slot);
    },
  };
}

const ofSlot = 'key_id = @keyId AND idempotency_key = @idempotencyKey AND group_title = @group';

const claimSql = `
  INSERT INTO rankd.idempotency_claims AS kept (key_id, idempotency_key, group_title, fingerprint, node)
  VALUES (@keyId, @idempotencyKey, @group, @fingerprint, @node)
  ON CONFLICT (key_id, idempotency_key, group_title)
    DO UPDATE SET fingerprint = excluded.fingerprint, node = excluded.node WHERE ${hasEnded('kept.node')}
  RETURNING node`;

const runningSql = `SELECT fingerprint FROM rankd.idempotency_claims WHERE ${ofSlot}`;

const releaseSql = `DELETE FROM rankd.idempotency_claims WHERE ${ofSlot} AND node = @node`;
