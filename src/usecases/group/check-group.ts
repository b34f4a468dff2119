import { isRankdError, RankdError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { counted } from '../../base/text.ts';
import { isoDay } from '../../base/time.ts';
import { policyFor, strayNames } from '../../core/policy-names.ts';
import type { RoleMisfit } from '../../core/role-settings.ts';
import { flawOfSuspendedRole } from '../../core/target.ts';
import type { CallContext, Ports } from '../../ports/index.ts';
import { callWithin } from '../../ports/platform.ts';
import type { Ranking } from '../change/ranking.ts';

const timeoutMs = 3_000;

/**
 * Compares the configuration with the group's roles, and logs and returns notes for the operator. Throws
 * `config_invalid` if a new entry can't be resolved to a role. Returns no notes if the group can't be read, because the
 * credential check that follows reports the reason.
 */
export async function checkGroup(
  app: Pick<Ranking, 'group' | 'policy' | 'clock'> & { log: Logger },
): Promise<string[]> {
  const { clock, log } = app;
  using call = callWithin(clock, timeoutMs, 'start');
  try {
    const { misfits, stray } = await strayRoles(app, call);
    for (const warning of stray) log.warn(warning);
    for (const { message, fix } of misfits) log.warn({ hint: fix, problem: 'roles' }, message);
    return [...misfits.map(({ message, fix }) => `${message} Fix: ${fix}`), ...stray];
  } catch (error) {
    if (isRankdError(error, 'config_invalid')) throw error;
    return [];
  }
}

export interface StrayRoles {
  misfits: readonly RoleMisfit[];
  /** One sentence for each other entry that needs attention. */
  stray: string[];
}

/**
 * Returns the configuration entries that do not fit the group. Throws `config_invalid` if a new entry can't be resolved
 * to a role, and the platform's error if a read fails.
 */
export async function strayRoles(
  { group, policy }: Pick<Ranking, 'group' | 'policy'>,
  call: CallContext,
): Promise<StrayRoles> {
  const scheme = await group.scheme(call);
  const unread = scheme.misfits.filter(({ isUnread, stops }) => isUnread && stops !== null);
  const [first] = unread;
  if (first !== undefined)
    throw new RankdError('config_invalid', unread.map(({ message }) => message).join(' '), { hint: first.fix });
  return { misfits: scheme.misfits, stray: await strayPolicy({ group, policy }, call) };
}

/** Returns one sentence for each policy entry that needs attention even though its roles are known. */
export async function strayPolicy(
  { group, policy }: Pick<Ranking, 'group' | 'policy'>,
  call: CallContext,
): Promise<string[]> {
  const scheme = await group.scheme(call);
  const [role] = scheme.named['policy.suspension.role'];
  const stray = strayNames(scheme.roles, policy);
  if (role === undefined) return stray;
  const { lockedRoles } = policyFor(scheme, policy);
  const flaw = flawOfSuspendedRole(role, { lockedRoles, acting: await group.acting(call) });
  return flaw === undefined ? stray : [...stray, flaw];
}

const dayMs = 86_400_000;
const expiryNoticeDays = 14;

/**
 * Checks the credential, and returns warnings for the operator. Also reads the roles with it, because Roblox expires
 * keys that go unused for 60 days. Source: Open Cloud documentation, API keys.
 */
export async function credentialWarnings(
  { platform, clock }: Pick<Ports, 'platform' | 'clock'>,
  call: CallContext,
): Promise<string[]> {
  const { state, expiresAt, canWrite } = await platform.checkCredential(call);
  await platform.roles(call);
  const now = clock.now();
  const warnings: string[] = [];
  if (state === 'unreported')
    warnings.push(
      'Roblox does not report the state of the Roblox key or the account that it acts as; rankd relies on Roblox to refuse changes',
    );
  if (canWrite === false)
    warnings.push(
      "Roblox does not list group:write for this group among the Roblox key's scopes: if Roblox refuses changes, give the key that scope",
    );
  if (expiresAt !== undefined && expiresAt - now < expiryNoticeDays * dayMs) {
    const days = Math.floor((expiresAt - now) / dayMs);
    warnings.push(
      `the Roblox key expires in ${days === 0 ? 'less than a day' : counted(days, 'day')}, on ${isoDay(expiresAt)}: renew it before then; rankd reload applies the new key`,
    );
  }
  return warnings;
}
