import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { RankdError } from '../../../base/errors.ts';
import { Connection } from '../engine/connection.ts';

export const databaseName = 'rankd.db';

export function hasDatabase(dataDir: string): boolean {
  return existsSync(join(dataDir, databaseName));
}

/** Runs `work` on the database of a data directory as it is: nothing is made or migrated. Throws `not_found` if there is none. */
export function onExisting<T>(dataDir: string, work: (db: Connection) => T): T {
  const db = openExisting(dataDir);
  try {
    return work(db);
  } finally {
    db.close();
  }
}

function openExisting(dataDir: string): Connection {
  return new Connection(requireDatabase(dataDir));
}

/** The path of the database. Throws `not_found` if there is none. */
export function requireDatabase(dataDir: string): string {
  if (hasDatabase(dataDir)) return join(dataDir, databaseName);
  throw new RankdError('not_found', `There is no database of rankd in ${dataDir}.`, {
    hint: 'name the data directory with --data-dir; `rankd serve` makes a new one',
  });
}
