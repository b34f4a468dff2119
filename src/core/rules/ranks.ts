import { RankdError } from '../../base/errors.ts';
import { originHint, roleTitle } from '../describe.ts';
import type { Role } from '../model.ts';
import { isNamed, type PolicyCase, type PolicyRule, type PrivilegedRoles, touchedRoles } from './rule.ts';

export const ceiling: PolicyRule = {
  name: 'ceiling',
  refusal(of) {
    const bound = ceilingOf(of);
    if ('code' in bound) return bound;
    const { rank, setBy, hint } = bound;
    const above = touchedRoles(of.scheme, of.plan).find((role) => role.rank > rank);
    if (above === undefined) return undefined;
    return notAllowed(`${roleTitle(above)} is above ${rank}, the ceiling set by ${setBy}.`, hint);
  },
};

/** Also refuses to change a member whose rank is below the floor, even if the new rank is not. */
export const floor: PolicyRule = {
  name: 'floor',
  refusal(of) {
    const bound = floorOf(of);
    if ('code' in bound) return bound;
    const { rank, setBy, hint } = bound;
    const below = touchedRoles(of.scheme, of.plan).find((role) => role.rank < rank);
    if (below !== undefined)
      return notAllowed(`${roleTitle(below)} is below ${rank}, the floor set by ${setBy}.`, hint);
    const rankBefore = of.plan.highestBefore?.rank ?? 0;
    if (rankBefore >= rank) return undefined;
    const who = `Member ${of.request.rankeeId} has rank ${rankBefore}`;
    return notAllowed(`${who}, below ${rank}, the floor set by ${setBy}.`, hint);
  },
};

export const lockedRoles: PolicyRule = {
  name: 'locked roles',
  refusal({ policy, scheme, plan }) {
    const locked = touchedRoles(scheme, plan).find((role) => isNamed(role, policy.lockedRoles));
    if (locked === undefined) return undefined;
    return notAllowed(
      `${roleTitle(locked)} is locked by policy.locked_roles: it is never given or taken.`,
      `remove it from policy.locked_roles ${originHint}`,
    );
  },
};

/** Prevents a stolen key from giving or taking roles that have power over other members or the group. */
export const privilegedRoles: PolicyRule = {
  name: 'privileged roles',
  refusal({ policy, key, scheme, plan }) {
    const privileged = touchedRoles(scheme, plan).find((role) => isReserved(role, { policy, key }));
    if (privileged === undefined) return undefined;
    return new RankdError(
      'rank_not_allowed',
      `${roleTitle(privileged)} is a privileged role${powersText(privileged)}; policy.privileged_roles reserves such roles for the operator.`,
      { hint: 'use the command line, or allow this key to do it: rankd key set KEY --privileged' },
    );
  },
};

/** True if the policy reserves the role for the operator, and the key is not exempt. */
export function isReserved(role: Role, { policy, key }: Pick<PolicyCase, 'policy' | 'key'>): boolean {
  if (policy.privilegedRoles === 'allow' || key === undefined || key.isPrivileged === true) return false;
  return isPrivileged(role, policy.privilegedRoles);
}

/** True if the role is known to have power over other members or the group, or the setting lists it. */
export function isPrivileged(role: Role, setting: PrivilegedRoles): boolean {
  return (role.powers ?? []).length > 0 || (Array.isArray(setting) && isNamed(role, setting));
}

export function privilegesAmong(roles: Role[], setting: PrivilegedRoles): { privileged: Role[]; unreported: Role[] } {
  const custom = roles.filter(({ kind }) => kind === 'custom');
  const privileged = custom.filter((role) => isPrivileged(role, setting));
  const unreported = custom.filter((role) => role.powers === undefined && !privileged.includes(role));
  return { privileged, unreported };
}

function powersText({ powers = [] }: Role): string {
  return powers.length === 0 ? '' : ` (it can ${powers.join(', ')})`;
}

export function isWithinBounds({ rank }: Role, of: Bounded): boolean {
  const [floor, ceiling] = [floorOf(of), ceilingOf(of)];
  return !('code' in floor) && !('code' in ceiling) && rank >= floor.rank && rank <= ceiling.rank;
}

type Bounded = Pick<PolicyCase, 'policy' | 'key'> & { scheme: Pick<PolicyCase['scheme'], 'roles'> };

interface Bound {
  rank: number;
  setBy: string;
  hint: string;
}

function ceilingOf({ policy, key, scheme }: Bounded): Bound | RankdError {
  const maxRank = rankNow(scheme, key?.maxRankRole) ?? key?.maxRank ?? 255;
  if (maxRank === 'gone') return roleIsGone('max_rank');
  return maxRank < policy.maxRank
    ? { rank: maxRank, setBy: 'the max_rank of this key', hint: 'rankd key set KEY --max-rank RANK' }
    : { rank: policy.maxRank, setBy: 'policy.max_rank', hint: `raise policy.max_rank ${originHint}` };
}

function floorOf({ policy, key, scheme }: Bounded): Bound | RankdError {
  const minRank = rankNow(scheme, key?.minRankRole) ?? key?.minRank ?? 0;
  if (minRank === 'gone') return roleIsGone('min_rank');
  return minRank > policy.minRank
    ? { rank: minRank, setBy: 'the min_rank of this key', hint: 'rankd key set KEY --min-rank RANK' }
    : { rank: policy.minRank, setBy: 'policy.min_rank', hint: `lower policy.min_rank ${originHint}` };
}

/** Returns the current rank of the role that defines a key's bound. */
function rankNow({ roles }: Bounded['scheme'], roleId: number | undefined): number | 'gone' | undefined {
  return roleId === undefined ? undefined : (roles.find(({ id }) => id === roleId)?.rank ?? 'gone');
}

function roleIsGone(rule: 'max_rank' | 'min_rank'): RankdError {
  const option = `--${rule.replace('_', '-')}`;
  const message = `The ${rule} of this key names a role that the group no longer has. The key can't change any rank until the operator sets a new ${rule}: rankd key set KEY ${option} RANK.`;
  return new RankdError('configuration_misfit', message, { hint: `rankd key set KEY ${option} RANK` });
}

function notAllowed(message: string, hint: string): RankdError {
  return new RankdError('rank_not_allowed', message, { hint });
}
