import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { KeptRole, Names, NamesQuery } from '../../../ports/index.ts';
import { databaseName } from './existing.ts';

/** A longer list would not help somebody who chooses from it. */
const maxNames = 200;
/** As far back as the history is searched for the names of users. */
const maxChanges = 5000;

/** Looks at the database as it is: it makes, migrates and locks nothing. If the database can't be read, there are no names. */
export function findNames(dataDir: string, { placesLike, placesOf, usersLike }: NamesQuery): Names {
  let opened: Database.Database | undefined;
  try {
    const database = new Database(join(dataDir, databaseName), { readonly: true, fileMustExist: true, timeout: 0 });
    opened = database;
    const keys = database.prepare<[], Names['keys'][number]>(
      'SELECT name, mode FROM keys WHERE revoked_at IS NULL ORDER BY name',
    );
    const places = database.prepare<[{ like: string; key: string | null; max: number }], { placeId: number }>(
      `SELECT DISTINCT place_id AS placeId FROM whitelist JOIN keys ON keys.id = key_id
       WHERE CAST(place_id AS TEXT) GLOB @like
         AND CASE WHEN @key IS NULL THEN revoked_at IS NULL ELSE @key IN (keys.id, name) END
       ORDER BY place_id LIMIT @max`,
    );
    const isDigits = /^\d*$/.test(placesLike);
    const found = isDigits ? places.all({ like: `${placesLike}*`, key: placesOf ?? null, max: maxNames }) : [];
    return {
      keys: keys.all(),
      places: found.map(({ placeId }) => placeId),
      roles: rolesOf(database),
      users: usersLike === undefined ? [] : usersOf(database, usersLike),
    };
  } catch {
    return { keys: [], places: [], roles: [], users: [] };
  } finally {
    opened?.close();
  }
}

function rolesOf(database: Database.Database): Names['roles'] {
  return database
    .prepare<[], KeptRole>(
      `SELECT role_id AS id, name, rank FROM group_roles
       WHERE group_title IS (SELECT group_title FROM served_group) OR NOT EXISTS (SELECT 1 FROM served_group)
       ORDER BY group_title, rank, role_id`,
    )
    .all();
}

/** Those that were looked up for the history, and those that an operator typed, which were looked up then. */
function usersOf(database: Database.Database, usersLike: string): string[] {
  const named = database.prepare<[{ like: string; max: number; maxChanges: number }], { name: string }>(
    `SELECT name FROM user_names WHERE name LIKE @like ESCAPE '\\'
     UNION
     SELECT rankee_name FROM (SELECT rankee_name, key_id FROM rank_changes ORDER BY seq DESC LIMIT @maxChanges)
     WHERE key_id IS NULL AND rankee_name LIKE @like ESCAPE '\\' AND rankee_name <> ''
     ORDER BY 1 LIMIT @max`,
  );
  const like = `${usersLike.replaceAll(/[%_\\]/g, '\\$&')}%`;
  return named.all({ like, max: maxNames, maxChanges }).map(({ name }) => name);
}
