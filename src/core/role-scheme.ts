import { RankdError } from '../base/errors.ts';
import { shorten } from '../base/shorten.ts';
import { listRoleIds, listRoles } from './list-roles.ts';
import type { Member, Role } from './model.ts';

/** The roles of a group, ascending by rank, and those of them that form its promotion ladder (`undefined`: none is configured). */
export interface RoleScheme {
  roles: Role[];
  ladder: Role[] | undefined;
}

/** True for the roles that changing a rank may give or take away. */
export function isManaged({ ladder }: RoleScheme, role: Role): boolean {
  return ladder === undefined ? role.kind === 'custom' : ladder.some((rung) => rung.id === role.id);
}

/** True for the roles that count for a member's rank: the base role and the managed ones. */
export function isCounted(scheme: RoleScheme, role: Role): boolean {
  return role.kind === 'base' || isManaged(scheme, role);
}

/** The roles that a change may end with, ascending by rank. */
export function givableRoles(scheme: RoleScheme): Role[] {
  return scheme.roles.filter((role) => isCounted(scheme, role));
}

/** The roles a member holds, including the base role, which every member has. Roles the group no longer lists are left out. */
export function heldRoles(roles: Role[], member: Member): Role[] {
  return roles.filter((role) => role.kind === 'base' || (role.kind !== 'guest' && member.roleIds.includes(role.id)));
}

/** The member's highest rank among the roles that count; 0 if there is none. */
export function highestRank(scheme: RoleScheme, held: Role[]): number {
  return Math.max(0, ...held.filter((role) => isCounted(scheme, role)).map((role) => role.rank));
}

/** Ascending. */
export function roleIds(roles: Role[]): number[] {
  return roles.map((role) => role.id).sort((a, b) => a - b);
}

/**
 * The role that `newRankId` means: a rank up to 255, a role id above.
 * Throws `unknown_rank`, `ambiguous_rank`, or `rank_not_allowed` for guest, owner and roles off the ladder.
 */
export function resolveTarget(scheme: RoleScheme, newRankId: number): Role {
  const named = scheme.roles.filter((role) => (newRankId > 255 ? role.id : role.rank) === newRankId);
  if (named.length === 0) {
    const ranks = listRoles(givableRoles(scheme));
    throw new RankdError('unknown_rank', `The group has no rank ${newRankId}. Its ranks are ${ranks}.`);
  }
  const [target, ...others] = named.filter((role) => isCounted(scheme, role));
  if (target === undefined) throw notGivable(scheme, named);
  if (others.length === 0) return target;
  throw new RankdError(
    'ambiguous_rank',
    `More than one role has rank ${newRankId}. Send the role id instead: ${listRoleIds([target, ...others])}.`,
  );
}

function notGivable(scheme: RoleScheme, named: Role[]): RankdError {
  const special = named.find((role) => role.kind === 'guest' || role.kind === 'owner');
  const why =
    special === undefined
      ? 'is not on the promotion ladder in group.ladder'
      : `is the ${special.kind} role, which can never be given`;
  const what = `"${shorten(named[0]?.name ?? '', 32)}" ${why}`;
  return new RankdError('rank_not_allowed', `${what}. Choose one of ${listRoles(givableRoles(scheme))}.`);
}

/** The number by which a request can name this role: its rank, or its id if others share the rank. */
export function nameForRequest({ roles }: Pick<RoleScheme, 'roles'>, { id, rank }: Role): number {
  return roles.every((role) => role.rank !== rank || role.id === id) ? rank : id;
}
