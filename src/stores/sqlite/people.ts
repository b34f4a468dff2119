import type { AuditMention } from '../../core/audit.ts';
import { actorOf } from '../../core/discord-person.ts';
import type { Mentions } from '../../core/forgetting.ts';
import type { PersonStore } from '../../ports/index.ts';
import { allowed } from '../allowed.ts';
import { isOpenChange } from '../where.ts';
import { appendEvents } from './audit.ts';
import { type ChangeRow, selectChange, toChange, updateChange } from './change-row.ts';
import { discordPeopleOf } from './discord.ts';
import type { Connection } from './engine/connection.ts';
import { holdsNaming, keepHolds } from './holds.ts';

export function personStore(db: Connection): PersonStore {
  return {
    async mentionsOf(userId) {
      return db.read(() => mentionsOf(db, userId));
    },

    async unnamedMembers({ since, limit }) {
      const rows = db.all<{ id: number }>(
        `SELECT DISTINCT rankee_id AS id
         FROM (SELECT rankee_id, rankee_name FROM rank_changes ORDER BY seq DESC LIMIT @limit) AS newest
         WHERE rankee_name = '' AND rankee_id > 0
           AND NOT EXISTS (SELECT 1 FROM user_names WHERE user_id = rankee_id AND found_at >= @since)`,
        { since, limit },
      );
      return rows.map(({ id }) => id);
    },

    async userNames(userIds, { since }) {
      const rows = db.all<{ id: number; name: string }>(
        `SELECT user_id AS id, name FROM user_names
         WHERE user_id IN (SELECT value FROM json_each(@userIds)) AND name IS NOT NULL AND found_at >= @since`,
        { userIds: JSON.stringify(userIds), since },
      );
      return new Map(rows.map(({ id, name }) => [id, name]));
    },

    async keepUserName({ id, name = null, at }, { since }) {
      return db.write(() => {
        db.run('DELETE FROM user_names WHERE found_at < @since', { since });
        db.run('INSERT OR REPLACE INTO user_names (user_id, name, found_at) VALUES (@id, @name, @at)', {
          id,
          name,
          at,
        });
      });
    },

    async forgetPerson({ userId, pseudonym }, judge) {
      return db.write(() => {
        const mentions = mentionsOf(db, userId);
        const byPerson = discordPeopleOf(db, userId).map(actorOf);
        const emptied = db.all<AuditMention>(auditMentions, { userId });
        const { change: forget, events } = allowed(judge(mentions, emptied, byPerson));
        const person = { userId, byPerson: JSON.stringify(byPerson) };
        for (const row of db.all<ChangeRow>(`${selectChange} WHERE ${namesPerson}`, person)) {
          const change = toChange(row);
          updateChange(db, change, forget.change(change));
        }
        keepHolds(db, holdsNaming(db, person).map(forget.hold));
        db.run('UPDATE audit_people SET user_id = @pseudonym, salt = NULL WHERE user_id = @userId', {
          userId,
          pseudonym,
        });
        db.run('DELETE FROM user_names WHERE user_id = @userId', { userId });
        db.run('DELETE FROM discord_people WHERE user_id = @userId', { userId });
        appendEvents(db, events);
        return mentions;
      });
    },
  };
}

const auditMentions = 'SELECT event_id AS "eventId", field FROM audit_people WHERE user_id = @userId';

const namesPerson = 'rankee_id = @userId OR ranker_id = @userId OR done_by IN (SELECT value FROM json_each(@byPerson))';

function mentionsOf(db: Connection, userId: number): Mentions {
  const found = db.get<{ changes: number; events: number; isOpen: number }>(
    `SELECT (SELECT count(*) FROM rank_changes WHERE ${namesPerson}) AS changes,
            (SELECT count(DISTINCT event_id) FROM audit_people WHERE user_id = @userId) AS events,
            EXISTS (SELECT 1 FROM rank_changes WHERE rankee_id = @userId AND ${isOpenChange}) AS isOpen`,
    { userId, byPerson: JSON.stringify(discordPeopleOf(db, userId).map(actorOf)) },
  );
  return { changes: found?.changes ?? 0, events: found?.events ?? 0, isOpen: found?.isOpen === 1 };
}
