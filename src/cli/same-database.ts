import { RankdError } from '../base/errors.ts';
import { askStatus } from '../control/ask.ts';
import type { DaemonStatus } from '../usecases/documents/status.ts';

/**
 * Throws `store_unavailable` if the daemon of the data directory has lost its database: it would not see what a command writes. To be
 * called once the command has the store open: what is done to its files later, the store finds out when it commits. Resolves with
 * what the daemon says; `undefined` if none answers.
 */
export async function refuseLostDatabase(dataDir: string): Promise<DaemonStatus | undefined> {
  const daemon = await askStatus(dataDir);
  const problem = daemon?.storeProblem ?? null;
  if (problem === null) return daemon;
  throw new RankdError(
    'store_unavailable',
    `The daemon that runs here does not use this database any more, so nothing was changed. It says: ${problem}`,
    { hint: `stop the daemon, check the files in ${dataDir}, start it again, then run the command again` },
  );
}
