import { accessSync, constants, lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { codeOf, RankdError } from '../base/errors.ts';
import { placeOf, type ServerAddress } from '../base/net.ts';
import { crypto } from '../base/node-modules.ts';
import type { SystemUser } from '../base/system.ts';

/** Checks whether this user can write to the directory or, if it does not exist, create it. */
export function isUsable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK | constants.X_OK);
    return true;
  } catch (error) {
    const parent = dirname(directory);
    return codeOf(error) === 'ENOENT' && parent !== directory && isUsable(parent);
  }
}

/**
 * Creates a private temporary directory for the socket and lock of a PostgreSQL daemon whose user cannot create a data
 * directory. Its name depends only on the user and the store, so that commands find it, too. Returns `undefined` if it
 * can't be created. Throws `no_permission` if it exists, but is not private to this user.
 */
export function temporaryDataDir({ uid }: SystemUser, store: ServerAddress): string | undefined {
  const name = crypto()
    .hash('sha256', `${store.user} ${placeOf(store)}`)
    .slice(0, 16);
  const directory = join(tmpdir(), `rankd-${uid}-${name}`);
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') return undefined;
  }
  const stats = lstatSync(directory);
  if (stats.isDirectory() && stats.uid === uid && (stats.mode & 0o077) === 0) return directory;
  const message = `${directory} is not a private directory of this user, so rankd does not create its lock there.`;
  throw new RankdError('no_permission', message, { hint: 'remove it, or choose a directory with --data-dir' });
}
