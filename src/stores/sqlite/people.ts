import type { Mentions } from '../../core/forgetting.ts';
import type { PersonStore } from '../../ports/index.ts';
import { allowed, appendEvents } from './audit.ts';
import { type ChangeRow, selectChange, toChange, updateChange } from './change-row.ts';
import type { Connection } from './engine/connection.ts';

export function personStore(db: Connection): PersonStore {
  return {
    async mentionsOf(userId) {
      return db.read(() => mentionsOf(db, userId));
    },

    async forgetPerson({ userId, pseudonym }, judge) {
      return db.write(() => {
        const mentions = mentionsOf(db, userId);
        const { change: forget, events } = allowed(judge(mentions));
        for (const row of db.all<ChangeRow>(`${selectChange} WHERE ${namesPerson}`, { userId })) {
          const change = toChange(row);
          updateChange(db, change, forget(change));
        }
        db.run('UPDATE audit_people SET user_id = @pseudonym, salt = NULL WHERE user_id = @userId', {
          userId,
          pseudonym,
        });
        appendEvents(db, events);
        return mentions;
      });
    },
  };
}

const namesPerson = 'rankee_id = @userId OR ranker_id = @userId';

function mentionsOf(db: Connection, userId: number): Mentions {
  const found = db.get<{ changes: number; events: number; isOpen: number }>(
    `SELECT (SELECT count(*) FROM rank_changes WHERE ${namesPerson}) AS changes,
            (SELECT count(DISTINCT event_id) FROM audit_people WHERE user_id = @userId) AS events,
            EXISTS (SELECT 1 FROM rank_changes WHERE rankee_id = @userId AND state IN ('pending', 'unknown')) AS isOpen`,
    { userId },
  );
  return { changes: found?.changes ?? 0, events: found?.events ?? 0, isOpen: found?.isOpen === 1 };
}
