import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { KeptRole, Names } from '../../../ports/index.ts';
import { databaseName } from './existing.ts';

/** A longer list would not help somebody who chooses from it. */
const maxPlaces = 200;

/** Looks at the database as it is: it makes, migrates and locks nothing. If the database can't be read, there are no names. */
export function findNames(dataDir: string, { placesLike }: { placesLike: string }): Names {
  let database: Database.Database | undefined;
  try {
    database = new Database(join(dataDir, databaseName), { readonly: true, fileMustExist: true, timeout: 0 });
    const keys = database.prepare<[], Names['keys'][number]>(
      'SELECT name, mode FROM keys WHERE revoked_at IS NULL ORDER BY name',
    );
    const places = database.prepare<[string, number], { placeId: number }>(
      'SELECT DISTINCT place_id AS placeId FROM whitelist WHERE CAST(place_id AS TEXT) GLOB ? ORDER BY place_id LIMIT ?',
    );
    const isDigits = /^\d*$/.test(placesLike);
    const found = isDigits ? places.all(`${placesLike}*`, maxPlaces) : [];
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
