import { RankdError } from '../base/errors.ts';
import type { Role } from './model.ts';
import { type RoleName, rolesMeant } from './role-name.ts';
import { isUnclear, type RoleScheme } from './role-scheme.ts';

/**
 * The roles that the configured ladder (ranks, role ids or role names) names, ascending by rank. The base role is below every rung, whatever
 * its rank, so it is left out; a role that may be the base role stays in, and is no other's rival for the rank. Throws `config_invalid` if an entry names no role, two roles, guest or owner, or if two of the
 * roles share a rank.
 */
export function resolveLadder(group: Pick<RoleScheme, 'roles' | 'rankOne'>, ladder: RoleName[]): Role[] {
  const named = new Set(ladder.flatMap((entry) => ladderRoles(group, entry)));
  const rungs = group.roles.filter((role) => role.kind !== 'base' && named.has(role));
  const clash = rungs.find((role, index) => !isUnclear(role) && role.rank === rungs[index + 1]?.rank);
  if (clash === undefined) return rungs;
  throw ladderError(`two of its roles share rank ${clash.rank}, so neither is above the other`);
}

function ladderRoles(group: Pick<RoleScheme, 'roles' | 'rankOne'>, entry: RoleName): Role[] {
  const meant = rolesMeant(group, entry);
  const [role, other] = meant;
  if (role === undefined) throw ladderError(noRole(entry));
  if (meant.every(isUnclear)) return meant;
  if (other !== undefined) throw ladderError(`${shared(entry)} role ${role.id} and role ${other.id}; name the role id`);
  if (role.kind === 'guest' || role.kind === 'owner')
    throw ladderError(`${entry} is the ${role.kind} role, which can never be given`);
  return [role];
}

function noRole(entry: RoleName): string {
  return typeof entry === 'number'
    ? `${entry} is not a rank or role id of the group`
    : `no role of the group is called "${entry}"`;
}

function shared(entry: RoleName): string {
  return typeof entry === 'number' ? `rank ${entry} is shared by` : `"${entry}" is the name of both`;
}

function ladderError(what: string): RankdError {
  return new RankdError('config_invalid', `group.ladder does not fit the group: ${what}.`, {
    hint: 'correct group.ladder in rankd.yaml; `rankd group roles` lists ranks and role ids',
  });
}
