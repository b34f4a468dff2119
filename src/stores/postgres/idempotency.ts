import type { IdempotencyClaim, IdempotencySlot, IdempotencyStanding, IdempotencyStore } from '../../ports/index.ts';
import { findByIdempotencyKey } from '../sql/change-queries.ts';
import type { Database } from './engine/database.ts';
import { hasEnded } from './engine/statements.ts';
import type { Nodes } from './nodes.ts';

/** A claim's row. Its version changes with each new claim on the slot. */
type ClaimedRow = IdempotencySlot & { version: string };

/**
 * Stores all nodes' claims. Ended nodes' claims are void, and so are claims that no request holds: a failed release or
 * a lost response leaves such a row, until the next request takes it over or the next heartbeat removes it.
 */
export function idempotencyStore(db: Database, nodes: Nodes): IdempotencyStore {
  /** The slots that requests of this process hold or are claiming, with the row's version once it is known. */
  const held = new Map<string, string | undefined>();
  const remove = (row: ClaimedRow) => db.work(removeSql, { ...row });

  nodes.releaseOrphansWith(async (node) => {
    for (const row of await db.work<ClaimedRow>(ofNodeSql, { node })) if (!held.has(nameOf(row))) await remove(row);
  });

  const tryToClaim = async (claim: IdempotencyClaim): Promise<IdempotencyStanding | undefined> => {
    const node = await nodes.id();
    const slot = nameOf(claim);
    const isFreeHere = !held.has(slot);
    if (isFreeHere) held.set(slot, undefined);
    let isClaimed = false;
    try {
      // The order matters: once the claim is granted, a change that its previous holder began is visible.
      const [[claimed], change, [running]] = await Promise.all([
        db.work<{ version: string }>(claimSql, { ...claim, node, isFreeHere }),
        findByIdempotencyKey(db.behindWork, claim),
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
        const standing = await tryToClaim(claim); // `undefined` if the other request has just released its claim
        if (standing !== undefined) return standing;
      }
    },

    async releaseIdempotencyKey(slot) {
      const version = held.get(nameOf(slot));
      // Deletes the entry before the row, because a claim made during the removal sets a new entry.
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

/** Leaves a row that another request has claimed in the meantime, because its version differs. */
const removeSql = `DELETE FROM rankd.idempotency_claims WHERE ${ofSlot} AND xmin::text = @version`;
