import { isRankdError, RankdError } from '../base/errors.ts';
import { askStatus } from '../control/ask.ts';

/** The error of a data directory that a daemon has, with which one that is; any other error as it is. */
export async function namingDaemon(dataDir: string, error: unknown): Promise<unknown> {
  if (!isRankdError(error, 'conflict')) return error;
  const daemon = await askStatus(dataDir);
  if (daemon === undefined) return error;
  const { pid, url } = daemon;
  return new RankdError('conflict', `A rankd daemon serves ${dataDir} already: process ${pid}, on ${url}.`, {
    hint: 'look at it with `rankd status`, and stop it first; or name another directory with --data-dir',
    cause: error,
  });
}
