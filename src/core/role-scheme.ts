import { RankdError } from '../base/errors.ts';
import type { Member, Role } from './model.ts';

/** The roles of a group, and what the configuration makes of them. */
export interface RoleScheme {
  /** Ascending by rank, the base role before others of its rank. */
  roles: Role[];
  /** The roles of the promotion ladder, ascending by rank; `undefined`: none is configured. */
  ladder: Role[] | undefined;
  rankOne: RankOne;
}

/**
 * What the rank of the base role means if custom roles share it: those, or the base role. In most groups they do: groups
 * from before March 2026 kept their roles, and got a base role at rank 1 beside their own lowest role.
 * Source: Roblox's announcement of several roles per member (devforum 4525605).
 */
export type RankOne = 'custom' | 'base';

/** The roles that a number means: a role id above 255, a rank up to 255. */
export function rolesNamed({ roles, rankOne }: Pick<RoleScheme, 'roles' | 'rankOne'>, number: number): Role[] {
  const named = roles.filter((role) => (number > 255 ? role.id : role.rank) === number);
  const isShared = named.some(isBase) && !named.every(isBase);
  return isShared ? named.filter((role) => isBase(role) === (rankOne === 'base')) : named;
}

/** How high a role is among those that count. The base role is below every other, whatever its rank. */
export function heightOf(role: Role | undefined): number {
  return role === undefined || isBase(role) ? 0 : role.rank;
}

function isBase({ kind }: Role): boolean {
  return kind === 'base';
}

/** True for a role that may be the base role. What depends on that can't be told at present; all other changes can. */
export function isUnclear({ kind }: Role): boolean {
  return kind === 'unclear';
}

/** The error of whatever depends on which role is the base role. */
export function undecided(): RankdError {
  return new RankdError(
    'platform_unavailable',
    'Several roles of the group have rank 1, and Roblox does not tell at the moment which of them is the one that every member holds.',
    {
      retryAfterMs: 30_000,
      hint: 'check that platform.legacy_base_url can be reached from this machine, or give your own role another rank',
    },
  );
}

/** True for the roles that changing a rank may give or take away. */
export function isManaged({ ladder }: RoleScheme, role: Role): boolean {
  return ladder === undefined ? role.kind === 'custom' : ladder.some((rung) => rung.id === role.id);
}

/** True for the roles that count for a member's rank: the base role and the managed ones. */
function isCounted(scheme: RoleScheme, role: Role): boolean {
  return isBase(role) || (isManaged(scheme, role) && !isUnclear(role));
}

/** The roles that a change may end with, ascending by rank. */
export function givableRoles(scheme: RoleScheme): Role[] {
  return scheme.roles.filter((role) => isCounted(scheme, role));
}

/** The roles a member holds, including the base role, which every member has. Ids that name none of `roles` are left out. */
export function heldRoles(roles: Role[], member: Member): Role[] {
  return roles.filter((role) => role.kind === 'base' || (role.kind !== 'guest' && member.roleIds.includes(role.id)));
}

/** The highest of the roles that count; `undefined` if none does. Throws `platform_unavailable` if that depends on an unclear one. */
export function highestRole(scheme: RoleScheme, held: Role[]): Role | undefined {
  const counted = held.filter((role) => isCounted(scheme, role));
  if (counted.length === 0 && scheme.roles.some(isUnclear)) throw undecided();
  return counted.reduce<Role | undefined>((top, role) => (heightOf(role) >= heightOf(top) ? role : top), undefined);
}

/** The ids of the roles, ascending. */
export function roleIds(roles: Pick<Role, 'id'>[]): number[] {
  return ascending(roles.map(({ id }) => id));
}

/**
 * The ids of everything a member holds, ascending, as records keep them: also of roles that the group's list omits. The base role
 * counts whether the platform lists it or not.
 */
export function heldIds(roles: Role[], member: Pick<Member, 'roleIds'>): number[] {
  const guest = roles.find(({ kind }) => kind === 'guest');
  const base = roles.filter(isBase).map(({ id }) => id);
  return ascending([...new Set([...base, ...member.roleIds])].filter((id) => id !== guest?.id));
}

/** True if rankd never gives, takes or restores this role (id): the group's list omits it. */
export function isUnlisted(roles: Role[], roleId: number): boolean {
  const role = roles.find(({ id }) => id === roleId);
  return role === undefined || role.kind === 'private';
}

function ascending(ids: number[]): number[] {
  return ids.sort((a, b) => a - b);
}

/** The number by which a request can name this role: its rank, or its id if the rank means another role or several. */
export function nameForRequest(scheme: Pick<RoleScheme, 'roles' | 'rankOne'>, { id, rank }: Role): number {
  return rolesNamed(scheme, rank).every((role) => role.id === id) ? rank : id;
}
