import { RankdError } from '../base/errors.ts';
import type { Direction, Member, Role } from './model.ts';
import { givableRoles, heightOf, heldRoles, highestRole, type RoleScheme } from './role-scheme.ts';
import { isNamed } from './rules/touched-roles.ts';
import { ambiguousRank } from './target.ts';

/**
 * The role that a member gets with the next rank up or down. Locked roles are skipped. Throws `no_further_rank` and `ambiguous_rank`.
 */
export function nextRole(scheme: RoleScheme, member: Member, step: Direction, lockedRoles: number[]): Role {
  const height = heightOf(highestRole(scheme, heldRoles(scheme.roles, member)));
  const next = neighbour(scheme, { height, direction: step === 'promote' ? 'up' : 'down' }, lockedRoles);
  if (next !== undefined) return next;
  const end = step === 'promote' ? 'highest' : 'lowest';
  throw new RankdError('no_further_rank', `Member ${member.userId} already has the ${end} rank that can be given.`);
}

/** The next rung above or below a height; `undefined` if there is none. Throws `ambiguous_rank`. */
export function neighbour(
  scheme: RoleScheme,
  { height, direction }: { height: number; direction: 'up' | 'down' },
  lockedRoles: number[] = [],
): Role | undefined {
  const isUp = direction === 'up';
  const beyond = rungs(scheme, lockedRoles).filter((role) =>
    isUp ? heightOf(role) > height : heightOf(role) < height,
  );
  const nearest = (isUp ? Math.min : Math.max)(...beyond.map(heightOf));
  const [target, ...twins] = beyond.filter((role) => heightOf(role) === nearest);
  if (target !== undefined && twins.length > 0) throw ambiguousRank([target, ...twins]);
  return target;
}

/** The roles that members go up and down by, ascending by rank. A locked role is left out, because nobody could get onto it or off it. */
export function rungs(scheme: RoleScheme, lockedRoles: number[]): Role[] {
  return givableRoles(scheme).filter((role) => !isNamed(role, lockedRoles));
}
