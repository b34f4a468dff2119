import { RankdError } from '../base/errors.ts';
import type { Direction, Member, Role } from './model.ts';
import { givableRoles, heldRoles, highestRank, type RoleScheme, resolveTarget } from './role-scheme.ts';
import { isNamed } from './rules/touched-roles.ts';

/**
 * The role that a member gets with the next rank up or down. Locked roles are skipped. Throws `rank_not_allowed` if there is no
 * further rank, and `ambiguous_rank`.
 */
export function nextRole(scheme: RoleScheme, member: Member, step: Direction, lockedRoles: number[]): Role {
  const rank = highestRank(scheme, heldRoles(scheme.roles, member));
  const next = neighbour(scheme, { rank, direction: step === 'promote' ? 'up' : 'down' }, lockedRoles);
  if (next !== undefined) return next;
  const end = step === 'promote' ? 'highest' : 'lowest';
  throw new RankdError('rank_not_allowed', `Member ${member.userId} already has the ${end} rank that can be given.`);
}

/** The next rung above or below `rank`; `undefined` if there is none. Throws `ambiguous_rank`. */
export function neighbour(
  scheme: RoleScheme,
  { rank, direction }: { rank: number; direction: 'up' | 'down' },
  lockedRoles: number[] = [],
): Role | undefined {
  const isUp = direction === 'up';
  const beyond = rungs(scheme, lockedRoles).filter((role) => (isUp ? role.rank > rank : role.rank < rank));
  const nearest = (isUp ? Math.min : Math.max)(...beyond.map((role) => role.rank));
  const [target, twin] = beyond.filter((role) => role.rank === nearest);
  return twin === undefined ? target : resolveTarget(scheme, nearest);
}

/** The roles that members go up and down by, ascending by rank. A locked role is no rung: nobody could get onto it or off it. */
export function rungs(scheme: RoleScheme, lockedRoles: number[]): Role[] {
  return givableRoles(scheme).filter((role) => !isNamed(role, lockedRoles));
}
