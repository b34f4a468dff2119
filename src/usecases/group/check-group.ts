import { isRankdError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { strayNames } from '../../core/rules/touched-roles.ts';
import { callWithin } from '../../ports/call-context.ts';
import type { Ranking } from '../change/ranking.ts';

const timeoutMs = 3_000;

/**
 * Compares the configuration with the group's roles. Logs and returns what the operator should correct. Throws `config_invalid` if
 * group.ladder does not fit the group. If the platform is down, rankd goes on without the check.
 */
export async function checkGroup({
  group,
  policy,
  clock,
  log,
}: Pick<Ranking, 'group' | 'policy' | 'clock'> & { log: Logger }): Promise<string[]> {
  using call = callWithin(clock, timeoutMs, 'start');
  try {
    const { roles } = await group.scheme(call);
    const stray = strayNames(roles, policy);
    for (const warning of stray) log.warn(warning);
    return stray;
  } catch (error) {
    if (isRankdError(error, 'config_invalid')) throw error;
    log.warn({ err: error }, 'the platform does not answer yet; going on all the same');
    return [];
  }
}
