import { RankdError } from '../base/errors.ts';
import type { Role } from './model.ts';
import { type RoleScheme, rolesNamed } from './role-scheme.ts';

/**
 * The roles that the configured ladder (ranks or role ids) names, ascending by rank. The base role is below every rung, whatever
 * its rank, so it is left out. Throws `config_invalid` if an entry names no role, two roles, guest or owner, or if two of the
 * roles share a rank.
 */
export function resolveLadder(group: Pick<RoleScheme, 'roles' | 'rankOne'>, ladder: number[]): Role[] {
  const named = new Set(ladder.map((entry) => ladderRole(group, entry)));
  const rungs = group.roles.filter((role) => role.kind !== 'base' && named.has(role));
  const clash = rungs.find((role, index) => role.rank === rungs[index + 1]?.rank);
  if (clash === undefined) return rungs;
  throw ladderError(`two of its roles share rank ${clash.rank}, so neither is above the other`);
}

function ladderRole(group: Pick<RoleScheme, 'roles' | 'rankOne'>, entry: number): Role {
  const [role, other] = rolesNamed(group, entry);
  if (role === undefined) throw ladderError(`${entry} is not a rank or role id of the group`);
  if (other !== undefined)
    throw ladderError(`rank ${entry} is shared by role ${role.id} and role ${other.id}; name the role id`);
  if (role.kind === 'guest' || role.kind === 'owner')
    throw ladderError(`${entry} is the ${role.kind} role, which can never be given`);
  return role;
}

function ladderError(what: string): RankdError {
  return new RankdError('config_invalid', `group.ladder does not fit the group: ${what}.`, {
    hint: 'correct group.ladder in rankd.yaml; `rankd group roles` lists ranks and role ids',
  });
}
