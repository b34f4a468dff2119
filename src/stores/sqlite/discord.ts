import type { DiscordPerson } from '../../core/discord-person.ts';
import type { DiscordStore } from '../../ports/index.ts';
import { allowed } from '../allowed.ts';
import { absent, discordColumns as columns, selected, upsertInto } from '../columns.ts';
import { withoutNulls } from '../row.ts';
import { appendEvents } from './audit.ts';
import type { Connection } from './engine/connection.ts';
import type { RowOf } from './engine/row.ts';

export function discordStore(db: Connection): DiscordStore {
  return {
    async findDiscordPerson(discordId) {
      return peopleWhere(db, 'discord_id = @discordId', { discordId })[0];
    },

    async listDiscordPeople() {
      return peopleWhere(db, 'true', {});
    },

    async updateDiscordPerson(discordId, judge) {
      return db.write(() => {
        const [known] = peopleWhere(db, 'discord_id = @discordId', { discordId });
        const { change, events } = allowed(judge(known));
        db.run(upsertInto('discord_people', columns, 'discord_id'), { ...absent(columns), ...change });
        appendEvents(db, events);
        return change;
      });
    },
  };
}

/** Everyone in Discord who is linked to this user. */
export function discordPeopleOf(db: Connection, userId: number): DiscordPerson[] {
  return peopleWhere(db, 'user_id = @userId', { userId });
}

function peopleWhere(db: Connection, where: string, bindings: Record<string, string | number>): DiscordPerson[] {
  return db
    .all<RowOf<DiscordPerson>>(
      `SELECT ${selected(columns)} FROM discord_people WHERE ${where} ORDER BY discord_id`,
      bindings,
    )
    .map(withoutNulls);
}
