import { isRankdError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { policyFor, strayNames } from '../../core/policy-names.ts';
import { flawOfSuspendedRole } from '../../core/suspended-role.ts';
import { callWithin } from '../../ports/call-context.ts';
import type { CallContext } from '../../ports/index.ts';
import type { Ranking } from '../change/ranking.ts';

const timeoutMs = 3_000;

/**
 * Holds the configuration against the group's roles. Returns what the operator should look at, and logs it. Throws
 * `config_invalid` if group.ladder does not fit the group, or if the policy names a role that it does not have. Says nothing if the group can't
 * be read: the look at the credential, which follows, tells why.
 */
export async function checkGroup(
  app: Pick<Ranking, 'group' | 'policy' | 'suspension' | 'clock'> & { log: Logger },
): Promise<string[]> {
  const { clock, log } = app;
  using call = callWithin(clock, timeoutMs, 'start');
  try {
    const stray = await strayPolicy(app, call);
    for (const warning of stray) log.warn(warning);
    return stray;
  } catch (error) {
    if (isRankdError(error, 'config_invalid')) throw error;
    return [];
  }
}

/** A sentence for each entry of the policy that somebody should look at. Throws as `checkGroup`. */
export async function strayPolicy(
  { group, policy, suspension }: Pick<Ranking, 'group' | 'policy' | 'suspension'>,
  call: CallContext,
): Promise<string[]> {
  const scheme = await group.scheme(call);
  const { lockedRoles } = policyFor(scheme.roles, policy);
  const { role } = suspension;
  if (role === undefined) return strayNames(scheme.roles, policy);
  const flaw = flawOfSuspendedRole(scheme, role, { lockedRoles, acting: await group.acting(call) });
  return [...strayNames(scheme.roles, policy), ...(flaw === undefined ? [] : [flaw])];
}
