import type { AuditMention } from '../../core/audit.ts';
import { actorOf } from '../../core/discord-person.ts';
import type { Mentions } from '../../core/forgetting.ts';
import type { PersonStore } from '../../ports/index.ts';
import { allowed } from '../allowed.ts';
import { isOpenChange } from '../where.ts';
import { appendEvents } from './audit.ts';
import { type ChangeRow, selectChange, toChange, updateChange } from './change-row.ts';
import { discordPeopleOf } from './discord.ts';
import type { Database, Reader } from './engine/database.ts';
import { holdsNaming, keepHolds } from './holds.ts';

export function personStore(db: Database): PersonStore {
  return {
    mentionsOf: (userId) => mentionsOf(db, userId),

    async unnamedMembers({ since, limit }) {
      const rows = await db.all<{ id: number }>(
        `SELECT DISTINCT rankee_id AS id
         FROM (SELECT rankee_id, rankee_name FROM rankd.rank_changes ORDER BY seq DESC LIMIT @limit) AS newest
         WHERE rankee_name = '' AND rankee_id > 0
           AND NOT EXISTS (SELECT 1 FROM rankd.user_names WHERE user_id = rankee_id AND found_at >= @since)`,
        { since, limit },
      );
      return rows.map(({ id }) => id);
    },

    async userNames(userIds, { since }) {
      const rows = await db.all<{ id: number; name: string }>(
        `SELECT user_id AS id, name FROM rankd.user_names
         WHERE user_id = ANY(@userIds) AND name IS NOT NULL AND found_at >= @since`,
        { userIds, since },
      );
      return new Map(rows.map(({ id, name }) => [id, name]));
    },

    async keepUserName({ id, name, at }, { since }) {
      await db.write(async (transaction) => {
        transaction.run('DELETE FROM rankd.user_names WHERE found_at < @since', { since });
        transaction.run(
          `INSERT INTO rankd.user_names (user_id, name, found_at) VALUES (@id, @name, @at)
           ON CONFLICT (user_id) DO UPDATE SET name = excluded.name, found_at = excluded.found_at`,
          { id, name, at },
        );
      });
    },

    async forgetPerson({ userId, pseudonym }, judge) {
      return db.write(async (transaction) => {
        const byPerson = (await discordPeopleOf(transaction, userId)).map(actorOf);
        const person = { userId, byPerson };
        const [mentions, emptied, changes, holds] = await Promise.all([
          mentionsOf(transaction, userId),
          transaction.all<AuditMention>(auditMentions, { userId }),
          transaction.all<ChangeRow>(`${selectChange} WHERE ${namesPerson}`, person),
          holdsNaming(transaction, person),
        ]);
        const { change: forget, events } = allowed(judge(mentions, emptied, byPerson));
        for (const change of changes.map(toChange))
          updateChange(transaction, change, { after: forget.change(change), isHeld: true });
        keepHolds(transaction, holds.map(forget.hold));
        transaction.run('UPDATE rankd.audit_people SET user_id = @pseudonym, salt = NULL WHERE user_id = @userId', {
          userId,
          pseudonym,
        });
        transaction.run('DELETE FROM rankd.user_names WHERE user_id = @userId', { userId });
        transaction.run('DELETE FROM rankd.discord_people WHERE user_id = @userId', { userId });
        await appendEvents(transaction, events);
        return mentions;
      });
    },
  };
}

const auditMentions = 'SELECT event_id AS "eventId", field FROM rankd.audit_people WHERE user_id = @userId';

const namesPerson = 'rankee_id = @userId OR ranker_id = @userId OR done_by = ANY(@byPerson)';

async function mentionsOf(db: Reader, userId: number): Promise<Mentions> {
  const byPerson = (await discordPeopleOf(db, userId)).map(actorOf);
  const found = await db.get<Mentions>(
    `SELECT (SELECT count(*) FROM rankd.rank_changes WHERE ${namesPerson}) AS changes,
            (SELECT count(DISTINCT event_id) FROM rankd.audit_people WHERE user_id = @userId) AS events,
            EXISTS (SELECT 1 FROM rankd.rank_changes WHERE rankee_id = @userId AND ${isOpenChange}) AS "isOpen"`,
    { userId, byPerson },
  );
  return found ?? { changes: 0, events: 0, isOpen: false };
}
