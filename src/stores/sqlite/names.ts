import { join } from 'node:path';
import Database from 'better-sqlite3';
import { databaseName } from './files/existing.ts';

export interface Names {
  /** That are not revoked, by name. */
  keys: Array<{ name: string; mode: string }>;
  /** Ascending. */
  places: number[];
}

/** More would not help somebody who chooses from a list. */
const maxPlaces = 200;

/**
 * What a person may want to name, for the shell's completion. Looks at the database as it is, without making, migrating or
 * locking anything; where it can't be read, there are no names.
 */
export function namesIn(dataDir: string, { placesLike }: { placesLike: string }): Names {
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
    return { keys: keys.all(), places: found.map(({ placeId }) => placeId) };
  } catch {
    return { keys: [], places: [] };
  } finally {
    database?.close();
  }
}
