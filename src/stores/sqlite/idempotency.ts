import type { IdempotencySlot, IdempotencyStore } from '../../ports/index.ts';
import { findByIdempotencyKey } from './change-queries.ts';
import type { Connection } from './engine/connection.ts';

/**
 * The claims of this process, by database. One process serves requests, the daemon that holds the lock of the data directory: so
 * no claim has to wait for the disk.
 */
const claimed = new Map<string, Map<string, string>>();

export function idempotencyStore(db: Connection): IdempotencyStore & Disposable {
  const claims = claimed.get(db.file) ?? new Map<string, string>();
  claimed.set(db.file, claims);
  const mine = new Set<string>();
  const release = (slot: string) => {
    if (mine.delete(slot)) claims.delete(slot);
  };
  return {
    async claimIdempotencyKey({ fingerprint, since, ...key }) {
      const change = findByIdempotencyKey(db, { ...key, since });
      if (change !== undefined) return { is: 'used', change };
      const slot = nameOf(key);
      const running = claims.get(slot);
      if (running !== undefined) return { is: 'running', fingerprint: running };
      claims.set(slot, fingerprint);
      mine.add(slot);
      return { is: 'claimed' };
    },

    async releaseIdempotencyKey(key) {
      release(nameOf(key));
    },

    [Symbol.dispose]() {
      for (const slot of mine) release(slot);
      if (claims.size === 0) claimed.delete(db.file);
    },
  };
}

function nameOf({ keyId, idempotencyKey, group }: IdempotencySlot): string {
  return JSON.stringify([keyId, idempotencyKey, group]);
}
