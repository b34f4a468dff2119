import { RankdError } from '../base/errors.ts';
import type { Member, Role } from './model.ts';

/** A group's roles, and how the configuration uses them. */
export interface RoleScheme {
  /** Ascending by rank, the base role before other roles with its rank. */
  roles: Role[];
  /** The roles of the promotion ladder, ascending by rank; `undefined` if there is no ladder. */
  ladder: Role[] | undefined;
  rankOne: RankOne;
}

/**
 * The roles that a rank number means if the base role shares it with custom roles: the custom roles or the base role.
 * Most groups have such a number: groups from before March 2026 retained their roles, and got a base role at rank 1
 * next to their own lowest role. Source: Roblox's announcement of several roles per member (devforum 4525605).
 */
export type RankOne = 'custom' | 'base';

/** Returns the roles that a number means: up to 255, it is a rank; above that, a role id. */
export function rolesNamed({ roles, rankOne }: Pick<RoleScheme, 'roles' | 'rankOne'>, number: number): Role[] {
  const named = roles.filter((role) => (number > 255 ? role.id : role.rank) === number);
  const isShared = named.some(isBase) && !named.every(isBase);
  return isShared ? named.filter((role) => isBase(role) === (rankOne === 'base')) : named;
}

/**
 * Returns a role's height for comparisons: its rank, or 0 for no role and for the base role, which is below all others.
 */
export function heightOf(role: Role | undefined): number {
  return role === undefined || isBase(role) ? 0 : role.rank;
}

function isBase({ kind }: Role): boolean {
  return kind === 'base';
}

export function isUnclear({ kind }: Role): boolean {
  return kind === 'unclear';
}

export function undecided(): RankdError {
  return new RankdError(
    'platform_unavailable',
    'Several roles in the group have rank 1, and Roblox currently does not show which of them every member holds.',
    {
      retryAfterMs: 30_000,
      hint: 'check that platform.legacy_base_url can be reached from this machine, or give your own role a different rank',
    },
  );
}

/** True if a rank change can give or take the role. */
export function isManaged({ ladder }: RoleScheme, role: Role): boolean {
  return ladder === undefined ? role.kind === 'custom' : ladder.some((rung) => rung.id === role.id);
}

/** True if the role counts for a member's rank. */
function isCounted(scheme: RoleScheme, role: Role): boolean {
  return isBase(role) || (isManaged(scheme, role) && !isUnclear(role));
}

/** Returns the roles that can be the target of a rank change, ascending by rank. */
export function givableRoles(scheme: RoleScheme): Role[] {
  return scheme.roles.filter((role) => isCounted(scheme, role));
}

/** Returns the extra roles, which a change can give and take without changing the rank. Empty if there is no ladder. */
export function alongsideRoles(scheme: RoleScheme): Role[] {
  return scheme.roles.filter((role) => role.kind === 'custom' && !isManaged(scheme, role));
}

/** Returns a member's roles, including the base role, which every member has. Ignores ids of unknown roles. */
export function heldRoles(roles: Role[], member: Member): Role[] {
  return roles.filter((role) => role.kind === 'base' || (role.kind !== 'guest' && member.roleIds.includes(role.id)));
}

/**
 * Returns the highest role that counts for the rank, or `undefined` if there is none. Throws `platform_unavailable` if
 * this depends on an unclear role.
 */
export function highestRole(scheme: RoleScheme, held: Role[]): Role | undefined {
  const counted = held.filter((role) => isCounted(scheme, role));
  if (counted.length === 0 && scheme.roles.some(isUnclear)) throw undecided();
  return counted.reduce<Role | undefined>((top, role) => (heightOf(role) >= heightOf(top) ? role : top), undefined);
}

export function roleIds(roles: Pick<Role, 'id'>[]): number[] {
  return ascending(roles.map(({ id }) => id));
}

/**
 * Returns a member's role ids as change records store them: in ascending order, without the guest role. They include
 * roles that the group's list omits, and always the base role, even if the platform does not report it.
 */
export function heldIds(roles: Role[], member: Pick<Member, 'roleIds'>): number[] {
  const guest = roles.find(({ kind }) => kind === 'guest');
  const base = roles.filter(isBase).map(({ id }) => id);
  return ascending([...new Set([...base, ...member.roleIds])].filter((id) => id !== guest?.id));
}

/** True if the group's list omits this role (id), so that rankd never gives, takes or restores it. */
export function isUnlisted(roles: Role[], roleId: number): boolean {
  const role = roles.find(({ id }) => id === roleId);
  return role === undefined || role.kind === 'private';
}

function ascending(ids: number[]): number[] {
  return ids.sort((a, b) => a - b);
}

/**
 * Returns the number that identifies this role in a request: its rank if that means only this role; otherwise, its id.
 */
export function nameForRequest(scheme: Pick<RoleScheme, 'roles' | 'rankOne'>, { id, rank }: Role): number {
  return rolesNamed(scheme, rank).every((role) => role.id === id) ? rank : id;
}

/** A role as people write it: a rank (up to 255), a role id (above 255), or the role's name. */
export type RoleName = number | string;

export function isRank(name: RoleName): name is number {
  return typeof name === 'number' && name <= 255;
}

/**
 * Matches the role names that a setting can contain. A number would be read as a rank or an id, and a long word may be
 * a misplaced secret.
 */
export const writableName = /^(?!.*rk_(live|test)_)(?!.*\S{41})(?=.*\D).{1,100}$/u;

/** Returns the roles that a rank, role id or name means in a setting. */
export function rolesMeant(group: Pick<RoleScheme, 'roles' | 'rankOne'>, name: RoleName): Role[] {
  return typeof name === 'number' ? rolesNamed(group, name) : rolesCalled(group.roles, name);
}

/** Returns the roles that a rank, role id or name means in a request. Names match more loosely than in settings. */
export function rolesRequested(group: Pick<RoleScheme, 'roles' | 'rankOne'>, name: RoleName): Role[] {
  return typeof name === 'number' ? rolesNamed(group, name) : rolesWanted(group.roles, name);
}

/**
 * Returns the roles with this name, ignoring case; if there is none, those whose names differ only in spaces, `_` and
 * `-`.
 */
export function rolesCalled<Named extends Pick<Role, 'name'>>(roles: Named[], name: string): Named[] {
  const called = roles.filter((role) => folded(role.name) === folded(name));
  if (called.length > 0 || squeezed(name) === '') return called;
  return roles.filter((role) => squeezed(role.name) === squeezed(name));
}

/**
 * Returns the roles that a user may mean by this name, using the strictest comparison that finds any. Role names often
 * contain badges, emoji and spaces that people don't type. Settings use `rolesCalled` instead, because a lock must not
 * apply to a role that happens to contain the same words.
 */
function rolesWanted<Named extends Pick<Role, 'name'>>(roles: Named[], name: string): Named[] {
  const called = rolesCalled(roles, name);
  if (called.length > 0) return called;
  const words = wordsOf(name);
  if (words.length === 0) return [];
  const alike = roles.filter((role) => wordsOf(role.name).join('') === words.join(''));
  return alike.length > 0 ? alike : roles.filter((role) => spaced(wordsOf(role.name)).includes(spaced(words)));
}

export function wordsOf(name: string): string[] {
  return folded(name.normalize('NFKC')).match(/[\p{L}\p{N}]+/gu) ?? [];
}

function spaced(words: string[]): string {
  return ` ${words.join(' ')} `;
}

function folded(name: string): string {
  return name.normalize('NFC').trim().toLowerCase();
}

function squeezed(name: string): string {
  return folded(name).replaceAll(/[\s_-]/g, '');
}
