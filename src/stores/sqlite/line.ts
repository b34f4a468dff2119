import type { Clock, LineStore } from '../../ports.ts';
import type { Connection } from './connection.ts';

export function lineStore(db: Connection, clock: Pick<Clock, 'now'>): LineStore {
  return {
    async endOfLine(rankeeId) {
      const last = db.get<{ seq: number }>('SELECT max(seq) AS seq FROM tickets WHERE rankee_id = +@rankeeId', {
        rankeeId,
      });
      return (last?.seq ?? 0) + 1;
    },

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

    async isNext({ rankeeId, place, holder }) {
      // A ticket from the future was taken before the clock was set back: its holder may be long gone.
      const ahead = db.get(
        `SELECT 1 FROM tickets
         WHERE rankee_id = +@rankeeId AND seq < @place AND holder <> @holder AND @now BETWEEN taken_at AND expires_at
         LIMIT 1`,
        { rankeeId, place, holder, now: clock.now() },
      );
      return ahead === undefined;
    },

    async forgetTickets(holderPrefix) {
      const sql =
        'DELETE FROM tickets WHERE substr(holder, 1, length(@holderPrefix)) = @holderPrefix OR expires_at < @now';
      await db.write(() => db.run(sql, { holderPrefix, now: clock.now() }));
    },
  };
}
