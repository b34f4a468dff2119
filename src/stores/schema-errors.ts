import { RankdError } from '../base/errors.ts';
import { version as rankdVersion } from '../base/version.ts';

/** The errors of both engines about a database whose schema another rankd made. `place` is the location of the database. */

/** The error of a command or daemon that would have to migrate a database which others use. */
export function othersWork(place: string, { version, newest }: { version: number; newest: number }): RankdError {
  const message = `The database ${place} has schema ${version}, this rankd needs ${newest}, and other daemons work on it.`;
  return new RankdError('conflict', message, {
    hint: '`rankd db migrate` changes it while they run; or stop them first, then run this again',
  });
}

/** The error of a command that reads an older database on a read-only file system. */
export function unmigrated(place: string, { version, newest }: { version: number; newest: number }): RankdError {
  const message = `The database ${place} has schema ${version}, this rankd needs ${newest}, and its file system is read-only.`;
  return new RankdError('conflict', message, {
    hint: 'copy its directory to a disk that can be written, and name the copy with --data-dir',
  });
}

/** The error of a running daemon whose database a later rankd has migrated beyond what this one can work with. */
export function outgrown(place: string, { needed, newest }: { needed: number; newest: number }): RankdError {
  return new RankdError(
    'schema_newer',
    `A newer rankd has changed the database ${place}, which now needs a rankd that knows schema ${needed}; this is rankd ${rankdVersion}, which knows up to ${newest}.`,
    { hint: 'start the newer rankd here' },
  );
}
