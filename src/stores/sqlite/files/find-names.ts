import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { KeptRole, Names, NamesQuery } from '../../../ports/index.ts';
import { databaseName } from './existing.ts';

/** A longer list would not help somebody who chooses from it. */
const maxPlaces = 200;

/** Looks at the database as it is: it makes, migrates and locks nothing. If the database can't be read, there are no names. */
export function findNames(dataDir: string, { placesLike, placesOf }: NamesQuery): Names {
  let database: Database.Database | undefined;
  try {
    database = new Database(join(dataDir, databaseName), { readonly: true, fileMustExist: true, timeout: 0 });
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
    const found = isDigits ? places.all({ like: `${placesLike}*`, key: placesOf ?? null, max: maxPlaces }) : [];
    return { keys: keys.all(), places: found.map(({ placeId }) => placeId), roles: rolesOf(database) };
  } catch {
    return { keys: [], places: [], roles: [] };
  } finally {
    database?.close();
  }
}

/** None if the database is from before they were kept. */
function rolesOf(database: Database.Database): Names['roles'] {
  try {
    return database
      .prepare<[], KeptRole>('SELECT role_id AS id, name, rank FROM group_roles ORDER BY group_title, rank, role_id')
      .all();
  } catch {
    return [];
  }
}
