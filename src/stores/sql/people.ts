import type { AuditMention } from '../../core/audit.ts';
import { actorOf, type DiscordPerson, discordPrefix } from '../../core/discord-person.ts';
import type { Mentions } from '../../core/forgetting.ts';
import type { ErasureRequest } from '../../core/model.ts';
import type { DiscordStore, PersonStore } from '../../ports/index.ts';
import { appendEvents } from './audit.ts';
import { type ChangeRow, selectChange, toChange, updateChange } from './change-row.ts';
import type { Bindings, Database, Reader, Transaction } from './database.ts';
import { holdsNaming, namesPerson, upsertHolds } from './holds.ts';
import {
  allowed,
  discordColumns as columns,
  erasureColumns,
  isOpenChange,
  type RowOf,
  selected,
  upserted,
  withoutNulls,
} from './rows.ts';

/**
 * The number of rows to read for a name: more than the number of users to return, because one user can have many
 * changes.
 */
const maxRowsOfName = 100;
/** The number of a user's recent changes to search for the user's name. */
const maxRowsOfUser = 100;

export function personStore(db: Database): PersonStore {
  const { schema, anyOf, sameText } = db.sql;
  return {
    mentionsOf: (userId) => mentionsOf(db, userId),

    async unnamedMembers({ since, limit }) {
      const rows = await db.all<{ id: number }>(
        `SELECT DISTINCT rankee_id AS id
         FROM (SELECT rankee_id, rankee_name FROM ${schema}.rank_changes ORDER BY seq DESC LIMIT @limit) AS newest
         WHERE rankee_name = '' AND rankee_id > 0
           AND NOT EXISTS (SELECT 1 FROM ${schema}.user_names WHERE user_id = rankee_id AND found_at >= @since)`,
        { since, limit },
      );
      return rows.map(({ id }) => id);
    },

    async usersNamed(name, { limit }) {
      const found = await Promise.all([
        db.all<{ id: number }>(
          `SELECT rankee_id AS id FROM ${schema}.rank_changes
           WHERE ${sameText('rankee_name', '@name')} AND rankee_id > 0 ORDER BY seq DESC LIMIT ${maxRowsOfName}`,
          { name },
        ),
        db.all<{ id: number }>(
          `SELECT user_id AS id FROM ${schema}.user_names
           WHERE ${sameText('name', '@name')} ORDER BY found_at DESC, user_id LIMIT ${maxRowsOfName}`,
          { name },
        ),
      ]);
      return [...new Set(found.flat().map(({ id }) => id))].slice(0, limit);
    },

    async userNames(userIds, { since }) {
      const rows = await db.all<{ id: number; name: string }>(
        `SELECT user_id AS id, name FROM ${schema}.user_names
         WHERE ${anyOf('user_id', '@userIds')} AND name IS NOT NULL AND found_at >= @since`,
        { userIds, since },
      );
      return new Map(rows.map(({ id, name }) => [id, name]));
    },

    async storeUserName({ id, name, at }, { since }) {
      await db.write(async (transaction) => {
        transaction.run(`DELETE FROM ${schema}.user_names WHERE found_at < @since`, { since });
        transaction.run(
          `INSERT INTO ${schema}.user_names (user_id, name, found_at) VALUES (@id, @name, @at)
           ON CONFLICT (user_id) DO UPDATE SET name = excluded.name, found_at = excluded.found_at`,
          { id, name, at },
        );
      });
    },

    async recordErasure({ id, userId }, judge) {
      return db.write(async (transaction) => {
        const [known] = await erasuresWhere(transaction, 'id = @id', { id });
        if (known !== undefined) return known;
        const { change: request, events } = allowed(judge((await mentionsOf(transaction, userId)).isNamed));
        putErasure(transaction, request);
        await appendEvents(transaction, events);
        return request;
      });
    },

    waitingErasures: () => erasuresWhere(db, 'done_at IS NULL', {}),

    async forgetPerson({ userId, pseudonym }, judge) {
      return db.write(async (transaction) => {
        const byPerson = (await discordPeopleOf(transaction, userId)).map(actorOf);
        const person = { userId, byPerson };
        const [mentions, emptied, changes, holds, requests] = await Promise.all([
          mentionsOf(transaction, userId),
          transaction.all<AuditMention>(
            `SELECT event_id AS "eventId", field FROM ${schema}.audit_people WHERE user_id = @userId`,
            { userId },
          ),
          transaction.all<ChangeRow>(`${selectChange(db.sql)} WHERE ${namesPerson(db.sql)}`, person),
          holdsNaming(transaction, person),
          erasuresWhere(transaction, 'user_id = @userId AND done_at IS NULL', { userId }),
        ]);
        const { change: forget, events } = allowed(judge(mentions, emptied, byPerson));
        for (const change of changes.map(toChange))
          updateChange(transaction, change, { after: forget.change(change), isHeld: true });
        upsertHolds(transaction, holds.map(forget.hold));
        for (const request of requests) putErasure(transaction, forget.erasure(request));
        transaction.run(`UPDATE ${schema}.audit_people SET user_id = @pseudonym, salt = NULL WHERE user_id = @userId`, {
          userId,
          pseudonym,
        });
        transaction.run(`DELETE FROM ${schema}.user_names WHERE user_id = @userId`, { userId });
        transaction.run(`DELETE FROM ${schema}.discord_people WHERE user_id = @userId`, { userId });
        await appendEvents(transaction, events);
        return mentions;
      });
    },
  };
}

async function mentionsOf(db: Reader, userId: number): Promise<Mentions> {
  const { schema } = db.sql;
  const named = namesPerson(db.sql);
  const found = await db.get<RowOf<Mentions>>(
    `SELECT (SELECT count(*) FROM ${schema}.rank_changes WHERE ${named}) AS changes,
            (SELECT count(DISTINCT event_id) FROM ${schema}.audit_people WHERE user_id = @userId) AS events,
            EXISTS (SELECT 1 FROM ${schema}.rank_changes WHERE ${named} AND ${isOpenChange}) AS "isOpen",
            EXISTS (SELECT 1 FROM ${schema}.holds WHERE ${named})
              OR EXISTS (SELECT 1 FROM ${schema}.user_names WHERE user_id = @userId)
              OR EXISTS (SELECT 1 FROM ${schema}.discord_people WHERE user_id = @userId)
              OR EXISTS (SELECT 1 FROM ${schema}.erasure_requests WHERE user_id = @userId AND done_at IS NULL) AS "isNamed"`,
    { userId, byPerson: (await discordPeopleOf(db, userId)).map(actorOf) },
  );
  const { changes = 0, events = 0 } = found ?? {};
  return { changes, events, isOpen: Boolean(found?.isOpen), isNamed: changes + events > 0 || Boolean(found?.isNamed) };
}

function putErasure(transaction: Transaction, request: ErasureRequest): void {
  transaction.run(`INSERT INTO ${transaction.sql.schema}.erasure_requests ${upserted(erasureColumns, 'id')}`, {
    ...request,
  });
}

async function erasuresWhere(db: Reader, where: string, bindings: Bindings): Promise<ErasureRequest[]> {
  const { schema, byBytes } = db.sql;
  const sql = `SELECT ${selected(erasureColumns)} FROM ${schema}.erasure_requests WHERE ${where}
               ORDER BY received_at, ${byBytes('id')}`;
  return (await db.all<RowOf<ErasureRequest>>(sql, bindings)).map(withoutNulls);
}

export function discordStore(db: Database): DiscordStore {
  return {
    async findDiscordPerson(discordId) {
      return (await peopleWhere(db, 'discord_id = @discordId', { discordId }))[0];
    },

    listDiscordPeople: () => peopleWhere(db, 'TRUE', {}),

    async linkedNames(userIds) {
      const { schema, anyOf, startsWith } = db.sql;
      // A change requested on Discord stores the ranker's Discord name instead of the Roblox name.
      const namesAs = (person: 'rankee' | 'ranker', isName: string) =>
        `SELECT name, seq FROM (SELECT seq, done_by, ${person}_name AS name FROM ${schema}.rank_changes
                                WHERE ${person}_id = user_id ORDER BY seq DESC LIMIT ${maxRowsOfUser}) AS ${person}
         WHERE ${isName}`;
      const rows = await db.all<{ id: number; name: string | null }>(
        `SELECT user_id AS id,
                (SELECT name FROM (${namesAs('rankee', `name <> ''`)}
                                   UNION ALL
                                   ${namesAs('ranker', `name <> '' AND NOT ${startsWith('done_by', '@prefix')}`)}) AS named
                 ORDER BY seq DESC LIMIT 1) AS name
         FROM ${schema}.discord_people WHERE ${anyOf('user_id', '@userIds')}`,
        { userIds, prefix: discordPrefix },
      );
      return new Map(rows.flatMap(({ id, name }) => (name === null ? [] : [[id, name]])));
    },

    async updateDiscordPerson(discordId, judge) {
      const put = `INSERT INTO ${db.sql.schema}.discord_people ${upserted(columns, 'discord_id')}`;
      return db.write(async (transaction) => {
        const [known] = await peopleWhere(transaction, 'discord_id = @discordId', { discordId });
        const { change, events } = allowed(judge(known));
        transaction.run(put, { ...change });
        await appendEvents(transaction, events);
        return change;
      });
    },
  };
}

function discordPeopleOf(db: Reader, userId: number): Promise<DiscordPerson[]> {
  return peopleWhere(db, 'user_id = @userId', { userId });
}

async function peopleWhere(db: Reader, where: string, bindings: Bindings): Promise<DiscordPerson[]> {
  const { schema, byBytes } = db.sql;
  const sql = `SELECT ${selected(columns)} FROM ${schema}.discord_people WHERE ${where} ORDER BY ${byBytes('discord_id')}`;
  return (await db.all<RowOf<DiscordPerson>>(sql, bindings)).map(withoutNulls);
}
