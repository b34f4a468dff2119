import type { DiscordPerson } from '../../core/discord-person.ts';
import type { DiscordStore } from '../../ports/index.ts';
import { allowed } from '../allowed.ts';
import { absent, discordColumns as columns, selected, upsertInto } from '../columns.ts';
import { withoutNulls } from '../row.ts';
import { appendEvents } from './audit.ts';
import type { Database, Reader } from './engine/database.ts';
import type { Nullable } from './key-row.ts';

export function discordStore(db: Database): DiscordStore {
  return {
    async findDiscordPerson(discordId) {
      return (await peopleWhere(db, 'discord_id = @discordId', { discordId }))[0];
    },

    listDiscordPeople: () => peopleWhere(db, 'true', {}),

    async updateDiscordPerson(discordId, judge) {
      return db.write(async (transaction) => {
        const [known] = await peopleWhere(transaction, 'discord_id = @discordId', { discordId });
        const { change, events } = allowed(judge(known));
        transaction.run(upsertInto('rankd.discord_people', columns, 'discord_id'), { ...absent(columns), ...change });
        await appendEvents(transaction, events);
        return change;
      });
    },
  };
}

/** Everyone in Discord who is linked to this user. */
export function discordPeopleOf(db: Reader, userId: number): Promise<DiscordPerson[]> {
  return peopleWhere(db, 'user_id = @userId', { userId });
}

async function peopleWhere(db: Reader, where: string, bindings: Record<string, unknown>): Promise<DiscordPerson[]> {
  const sql = `SELECT ${selected(columns)} FROM rankd.discord_people WHERE ${where} ORDER BY discord_id COLLATE "C"`;
  return (await db.all<Nullable<DiscordPerson>>(sql, bindings)).map(withoutNulls);
}
