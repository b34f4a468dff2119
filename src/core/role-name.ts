import type { Role } from './model.ts';
import { type RoleScheme, rolesNamed } from './role-scheme.ts';

/** A role as people write it: a rank (up to 255), a role id (above 255), or the role's name. */
export type RoleName = number | string;

export function isRank(name: RoleName): name is number {
  return typeof name === 'number' && name <= 255;
}

/** The names that a setting can hold. A number would be a rank or an id, and a long word may be a misplaced secret. */
export const writableName = /^(?!.*rk_(live|test)_)(?!.*\S{41})(?=.*\D).{1,100}$/u;

/** The roles that a rank, role id or name means. */
export function rolesMeant(group: Pick<RoleScheme, 'roles' | 'rankOne'>, name: RoleName): Role[] {
  return typeof name === 'number' ? rolesNamed(group, name) : rolesCalled(group.roles, name);
}

/** The same for a request. */
export function rolesRequested(group: Pick<RoleScheme, 'roles' | 'rankOne'>, name: RoleName): Role[] {
  return typeof name === 'number' ? rolesNamed(group, name) : rolesWanted(group.roles, name);
}

/** The roles with this name, ignoring case; if there is none, those whose names differ only in spaces, `_` and `-`. */
export function rolesCalled<Named extends Pick<Role, 'name'>>(roles: Named[], name: string): Named[] {
  const called = roles.filter((role) => folded(role.name) === folded(name));
  if (called.length > 0 || squeezed(name) === '') return called;
  return roles.filter((role) => squeezed(role.name) === squeezed(name));
}

/**
 * The roles that a person may mean by this name: by the first step that any role passes. Names of roles carry badges, emoji and spaces that
 * nobody types. Settings are read by `rolesCalled`, because a lock or a ceiling must not fall on a role that has the words by chance.
 */
export function rolesWanted<Named extends Pick<Role, 'name'>>(roles: Named[], name: string): Named[] {
  const called = rolesCalled(roles, name);
  if (called.length > 0) return called;
  const words = wordsOf(name);
  if (words.length === 0) return [];
  const alike = roles.filter((role) => wordsOf(role.name).join('') === words.join(''));
  return alike.length > 0 ? alike : roles.filter((role) => spaced(wordsOf(role.name)).includes(spaced(words)));
}

/** The runs of letters and digits in a name, folded. */
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
