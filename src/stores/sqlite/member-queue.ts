import type { MemberQueueStore } from '../../ports/index.ts';
import type { Connection } from './engine/connection.ts';
import type { Nodes } from './nodes.ts';

export interface SqliteMemberQueue extends MemberQueueStore {
  /** Gives up the positions that could not be given up before. Does nothing if there are none; never throws. */
  settle(): Promise<void>;
}

export function memberQueueStore(db: Connection, nodes: Nodes): SqliteMemberQueue {
  /** Positions that were left, until they are gone from the database. */
  const leaving = new Set<number>();
  const settle = async () => {
    const positions = [...leaving];
    if (positions.length === 0) return;
    await db.write(() =>
      db.run('DELETE FROM member_queue WHERE seq IN (SELECT value FROM json_each(@positions))', {
        positions: JSON.stringify(positions),
      }),
    );
    for (const position of positions) leaving.delete(position);
  };
  return {
    async enqueue(rankeeId) {
      const node = nodes.id;
      return db.write(() => {
        db.run('INSERT INTO member_queue (rankee_id, node) VALUES (@rankeeId, @node)', { rankeeId, node });
        return db.get<{ position: string }>('SELECT CAST(last_insert_rowid() AS TEXT) AS position')?.position ?? '';
      });
    },

    async leave(position) {
      leaving.add(Number(position));
      await settle();
    },

    settle: () => settle().catch(() => undefined), // the next call tries again

    watchQueue: () => undefined,

    async queueStanding({ rankeeId, position }) {
      const before = position === undefined ? Number.MAX_SAFE_INTEGER : Number(position);
      const ahead = db.all<{ seq: number; node: string }>(
        'SELECT seq, node FROM member_queue WHERE rankee_id = @rankeeId AND seq < @before ORDER BY seq',
        { rankeeId, before },
      );
      const others = new Set(ahead.map(({ node }) => node).filter((node) => node !== nodes.idIfBegun));
      const gone = [...others].filter((node) => nodes.isGone(node));
      if (gone.length > 0) await db.write(() => forget(db, gone));
      return { position: position ?? String((ahead.at(-1)?.seq ?? 0) + 1), isNext: others.size === gone.length };
    },
  };
}

function forget(db: Connection, nodes: readonly string[]): void {
  db.run('DELETE FROM member_queue WHERE node IN (SELECT value FROM json_each(@nodes))', {
    nodes: JSON.stringify(nodes),
  });
}
