import type { IdempotencyClaim, IdempotencySlot, IdempotencyState, IdempotencyStore } from '../../ports/index.ts';
import { findByIdempotencyKey } from '../sql/change-queries.ts';
import type { Database } from './engine/database.ts';
import { hasEnded } from './engine/statements.ts';
import type { Nodes } from './nodes.ts';

/** A claim's row, with a version that changes with each new claim on the slot. */
type ClaimedRow = IdempotencySlot & { version: string };

/**
 * Stores the claims of all nodes. A claim is void once its node has ended, or once no request holds it: a failed
 * release or a lost response can leave its row behind until another request takes it over or the next heartbeat removes
 * it.
 */
export function idempotencyStore(db: Database, nodes: Nodes): IdempotencyStore {
  /** The slots that this process's requests hold or are claiming, each with its row's version once known. */
  const held = new Map<string, string | undefined>();
  const remove = (row: ClaimedRow) => db.work(removeSql, { ...row });

  nodes.releaseOrphansWith(async (node) => {
    for (const row of await db.work<ClaimedRow>(ofNodeSql, { node })) if (!held.has(nameOf(row))) await remove(row);
  });

  const tryToClaim = async (claim: IdempotencyClaim): Promise<IdempotencyState | undefined> => {
    const node = await nodes.id();
    const slot = nameOf(claim);
    const isFreeHere = !held.has(slot);
    if (isFreeHere) held.set(slot, undefined);
    let isClaimed = false;
    try {
      // The order matters: once the claim is granted, the lookup finds any change that the previous holder began.
      const [[claimed], change, [running]] = await Promise.all([
        db.work<{ version: string }>(claimSql, { ...claim, node, isFreeHere }),
        findByIdempotencyKey(db.afterWork, claim),
        db.work<{ fingerprint: string }>(runningSql, { ...claim }),
      ]);
      if (change !== undefined) {
        if (claimed !== undefined) await remove({ ...claim, ...claimed });
        return { is: 'used', change };
      }
      if (claimed === undefined) return running && { is: 'running', fingerprint: running.fingerprint };
      isClaimed = true;
      held.set(slot, claimed.version);
      return { is: 'claimed' };
    } finally {
      if (isFreeHere && !isClaimed) held.delete(slot);
    }
  };
  return {
    async claimIdempotencyKey(claim) {
      for (;;) {
        const state = await tryToClaim(claim); // `undefined` if the other request has just released its claim
        if (state !== undefined) return state;
      }
    },

    async releaseIdempotencyKey(slot) {
      const version = held.get(nameOf(slot));
      // Deletes the entry first, because a new claim may set it again while the row is being removed.
      held.delete(nameOf(slot));
      if (version !== undefined) await remove({ ...slot, version });
    },
  };
}

function nameOf({ keyId, idempotencyKey, group }: IdempotencySlot): string {
  return JSON.stringify([keyId, idempotencyKey, group]);
}

const ofSlot = 'key_id = @keyId AND idempotency_key = @idempotencyKey AND group_title = @group';

const claimSql = `
  INSERT INTO rankd.idempotency_claims AS kept (key_id, idempotency_key, group_title, fingerprint, node)
  VALUES (@keyId, @idempotencyKey, @group, @fingerprint, @node)
  ON CONFLICT (key_id, idempotency_key, group_title)
    DO UPDATE SET fingerprint = excluded.fingerprint, node = excluded.node
    WHERE ${hasEnded('kept.node')} OR (kept.node = excluded.node AND @isFreeHere::boolean)
  RETURNING xmin::text AS version`;

const runningSql = `SELECT fingerprint FROM rankd.idempotency_claims WHERE ${ofSlot}`;

const ofNodeSql = `
  SELECT key_id AS "keyId", idempotency_key AS "idempotencyKey", group_title AS "group", xmin::text AS version
  FROM rankd.idempotency_claims WHERE node = @node`;

/** Does nothing if another request has claimed the slot in the meantime, because the row's version then differs. */
const removeSql = `DELETE FROM rankd.idempotency_claims WHERE ${ofSlot} AND xmin::text = @version`;
