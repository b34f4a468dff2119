import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { privateFile } from '../../base/data-dir.ts';
import { newId } from '../../core/api-key.ts';
import type { IdempotencySlot, IdempotencyStore, MemberQueueStore } from '../../ports/index.ts';
import { findByIdempotencyKey } from '../sql/change-queries.ts';
import type { OwnNode } from '../sql/database.ts';
import type { SqliteDatabase } from './engine/database.ts';
import type { OpenedFiles } from './engine/opened-files.ts';
import { nodeLockName, type ProcessLock, takeLock } from './files/daemon-lock.ts';

/**
 * A handle's node. It starts when its id is first needed, and ends when the handle is closed or the process ends. Each
 * node holds a lock on a separate file, even while its process is suspended.
 */
export class Node implements OwnNode {
  readonly #dataDir: string;
  readonly #files: Pick<OpenedFiles, 'add' | 'remove'>;
  #ownNode: { id: string; lock: ProcessLock } | undefined;

  /** `files`: the handle's open files. They include the node's lock file while the node exists. */
  constructor({ file, files }: { file: string; files: Pick<OpenedFiles, 'add' | 'remove'> }) {
    this.#dataDir = dirname(file);
    this.#files = files;
  }

  async id(): Promise<string> {
    this.#ownNode ??= this.#join();
    return this.#ownNode.id;
  }

  get idIfBegun(): string | undefined {
    return this.#ownNode?.id;
  }

  get hasLease(): boolean {
    return this.#ownNode !== undefined;
  }

  /** Returns a lease that never expires, because no other node takes over from a slow one. */
  leaseLeft(): () => number {
    return () => Number.POSITIVE_INFINITY;
  }

  close(): void {
    if (this.#ownNode === undefined) return;
    this.#files.remove(join(this.#dataDir, nodeLockName(this.#ownNode.id)));
    this.#ownNode.lock.release({ remove: true });
    this.#ownNode = undefined;
  }

  /** Creates and locks the node's file. Retries if another process removes the file before this one can lock it. */
  #join(): { id: string; lock: ProcessLock } {
    for (;;) {
      const id = newId('node');
      const file = privateFile(this.#dataDir, nodeLockName(id));
      const lock = takeLock(file);
      if (lock !== undefined && existsSync(file)) {
        this.#files.add(file);
        return { id, lock };
      }
      lock?.release();
    }
  }
}

export interface SqliteMemberQueue extends MemberQueueStore {
  /** Retries failed releases. Never rejects. */
  settle(): Promise<void>;
}

export function memberQueueStore(db: SqliteDatabase, own: OwnNode): SqliteMemberQueue {
  const { anyOf, hasEnded } = db.sql;
  /** Released positions that are still in the database. */
  const leaving = new Set<number>();
  const settle = async () => {
    const positions = [...leaving];
    if (positions.length === 0) return;
    await db.work(`DELETE FROM member_queue WHERE ${anyOf('seq', '@positions')}`, { positions });
    for (const position of positions) leaving.delete(position);
  };
  return {
    async enqueue(rankeeId) {
      const join =
        'INSERT INTO member_queue (rankee_id, node) VALUES (@rankeeId, @node) RETURNING CAST(seq AS TEXT) AS position';
      const [row] = await db.work<{ position: string }>(join, { rankeeId, node: await own.id() });
      return row?.position ?? '';
    },

    async leave(position) {
      leaving.add(Number(position));
      await settle();
    },

    settle: () => settle().catch(() => undefined), // the next call retries

    async queueState({ rankeeId, position }) {
      const ahead = await db.all<{ seq: number; node: string; isGone: number }>(
        `SELECT seq, node, node IS NOT @mine AND ${hasEnded('node')} AS isGone
         FROM member_queue WHERE rankee_id = @rankeeId AND seq < @before ORDER BY seq`,
        { rankeeId, mine: own.idIfBegun, before: position === undefined ? Number.MAX_SAFE_INTEGER : Number(position) },
      );
      const nodes = ahead.filter(({ isGone }) => isGone === 1).map(({ node }) => node);
      if (nodes.length > 0) await db.work(`DELETE FROM member_queue WHERE ${anyOf('node', '@nodes')}`, { nodes });
      return {
        position: position ?? String((ahead.at(-1)?.seq ?? 0) + 1),
        isNext: ahead.every(({ node, isGone }) => node === own.idIfBegun || isGone === 1),
      };
    },
  };
}

/**
 * This process's claims, keyed by database file. They are not stored on disk, because only one process serves requests:
 * the daemon that holds the data directory's lock.
 */
const claimed = new Map<string, Map<string, string>>();

export function idempotencyStore(db: SqliteDatabase): IdempotencyStore & Disposable {
  const claims = claimed.get(db.file) ?? new Map<string, string>();
  claimed.set(db.file, claims);
  const mine = new Set<string>();
  const release = (slot: string) => {
    if (mine.delete(slot)) claims.delete(slot);
  };
  return {
    async claimIdempotencyKey({ fingerprint, since, ...key }) {
      const slot = nameOf(key);
      const running = claims.get(slot);
      if (running === undefined) {
        claims.set(slot, fingerprint);
        mine.add(slot);
      }
      // Reads after claiming, so that a change begun by the claim's previous holder is visible.
      const change = await findByIdempotencyKey(db, { ...key, since });
      if (change === undefined)
        return running === undefined ? { is: 'claimed' } : { is: 'running', fingerprint: running };
      if (running === undefined) release(slot);
      return { is: 'used', change };
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
