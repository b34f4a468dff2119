import type { Clock, MemberQueueStore } from '../../ports/index.ts';
import type { Connection } from './engine/connection.ts';

export function lineStore(db: Connection, clock: Pick<Clock, 'now'>): MemberQueueStore {
  return {
    async takeTicket({ rankeeId, holder, lifeMs }) {
      const now = clock.now();
      return db.write(() => {
        db.run(
          `INSERT INTO tickets (rankee_id, holder, taken_at, expires_at)
           VALUES (@rankeeId, @holder, @now, @expiresAt)`,
          { rankeeId, holder, now, expiresAt: now + lifeMs },
        );
        return db.get<{ seq: number }>('SELECT last_insert_rowid() AS seq')?.seq ?? 0;
      });
    },

    async giveBack(ticket) {
      await db.write(() => db.run('DELETE FROM tickets WHERE seq = @ticket', { ticket }));
    },

    async lookAhead({ rankeeId, holder, place }) {
      // A ticket from the future was taken before the clock was set back: its holder may be long gone.
      const seen = db.get<{ end: number; isBehind: number }>(
        `SELECT coalesce(max(seq), 0) + 1 AS "end",
                coalesce(max(holder <> @holder AND @now BETWEEN taken_at AND expires_at), 0) AS isBehind
         FROM tickets WHERE rankee_id = @rankeeId AND seq < @before`,
        { rankeeId, holder, before: place ?? Number.MAX_SAFE_INTEGER, now: clock.now() },
      );
      return { place: place ?? seen?.end ?? 1, isNext: seen?.isBehind !== 1 };
    },

    async forgetTickets(holderPrefix) {
      const sql =
        'DELETE FROM tickets WHERE substr(holder, 1, length(@holderPrefix)) = @holderPrefix OR expires_at < @now';
      await db.write(() => db.run(sql, { holderPrefix, now: clock.now() }));
    },
  };
}
