import { RankdError } from '../base/errors.ts';
import type { Role } from './model.ts';

/**
 * The roles that the configured ladder (ranks or role ids) names, ascending by rank. The base role is always the ladder's bottom,
 * so it is left out. Throws `config_invalid` if an entry names no role, two roles, guest or owner, or if two roles share a rank.
 */
export function resolveLadder(roles: Role[], ladder: number[]): Role[] {
  const named = new Set(ladder.map((entry) => ladderRole(roles, entry)));
  const isRung = (role: Role) => role.kind === 'base' || named.has(role);
  const rungs = roles.filter(isRung);
  const clash = rungs.find((role, index) => role.rank === rungs[index + 1]?.rank);
  if (clash !== undefined) {
    throw ladderError(
      `two of its roles share rank ${clash.rank}, so neither is above the other; the base role counts as one of them`,
    );
  }
  return rungs.filter((role) => role.kind !== 'base');
}

function ladderRole(roles: Role[], entry: number): Role {
  const [role, other] = roles.filter((role) => (entry > 255 ? role.id : role.rank) === entry);
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
