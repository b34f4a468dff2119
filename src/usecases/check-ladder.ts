import { deadlineIn } from '../clock.ts';
import { isRankdError } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Ranking } from './ranking.ts';

const patienceMs = 3_000;

/** Throws `config_invalid` where group.ladder does not fit the group. A platform that is down keeps nobody from going on. */
export async function checkLadder({
  group,
  clock,
  log,
}: Pick<Ranking, 'group' | 'clock'> & { log: Logger }): Promise<void> {
  using deadline = deadlineIn(clock, patienceMs);
  await group.scheme({ signal: deadline.signal, deadlineAt: deadline.at, lane: 'start' }).catch((error) => {
    if (isRankdError(error, 'config_invalid')) throw error;
    log.warn({ err: error }, 'the platform does not answer yet; going on all the same');
  });
}
