import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { RankdError } from '../../../base/errors.ts';
import { refuseLink } from '../../../base/files/data-dir.ts';
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

/** The path of the database. Throws `not_found` if there is none, and `config_invalid` if it is a link. */
export function requireDatabase(dataDir: string): string {
  const file = join(dataDir, databaseName);
  refuseLink(file);
  if (hasDatabase(dataDir)) return file;
  throw new RankdError('not_found', `There is no database of rankd in ${dataDir}.`, {
    hint: 'name the data directory with --data-dir; `rankd serve` makes a new one',
  });
}
