import { RankdError } from '../base/errors.ts';
import { version as rankdVersion } from '../base/version.ts';

export function usedByOthers(place: string, { version, newest }: { version: number; newest: number }): RankdError {
  const message = `The database ${place} has schema ${version}, this rankd needs ${newest}, and other rankd processes are using it.`;
  return new RankdError('conflict', message, {
    hint: 'stop them and try again, or run `rankd db migrate`, which works while they are running',
  });
}

export function unmigrated(place: string, { version, newest }: { version: number; newest: number }): RankdError {
  const message = `The database ${place} has schema ${version}, this rankd needs ${newest}, and the file system is read-only.`;
  return new RankdError('conflict', message, {
    hint: 'copy its directory to a writable disk, and name the copy with --data-dir',
  });
}

/** The error if a newer rankd migrates the database while this process has it open. */
export function schemaTooNew(place: string, { needed, newest }: { needed: number; newest: number }): RankdError {
  return new RankdError(
    'schema_newer',
    `A newer rankd has changed the database ${place}, which now requires schema ${needed}; this is rankd ${rankdVersion}, which supports schemas up to ${newest}.`,
    { hint: 'start the newer rankd instead' },
  );
}
