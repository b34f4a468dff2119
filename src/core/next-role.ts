import { RankdError } from '../base/errors.ts';
import { listRoles } from './list-roles.ts';
import type { Direction, Member, Role } from './model.ts';
import {
  givableRoles,
  heightOf,
  heldRoles,
  highestRole,
  isUnclear,
  type RoleScheme,
  undecided,
} from './role-scheme.ts';
import { isNamed } from './rules/touched-roles.ts';

/** The distance from the member's present rank. */
export interface Steps {
  step: Direction;
  /** The number of ranks up or down; 1 by default. */
  stepCount?: number | undefined;
}

/**
 * The role that is the given number of ranks above or below a member's. Locked roles are skipped. Throws
 * `no_further_rank` and `ambiguous_rank`.
 */
export function nextRole(
  scheme: RoleScheme,
  member: Member,
  { step, stepCount = 1 }: Steps,
  lockedRoles: number[],
): Role {
  const height = heightOf(highestRole(scheme, heldRoles(scheme.roles, member)));
  const direction = step === 'promote' ? 'up' : 'down';
  let next = neighbour(scheme, { height, direction }, lockedRoles);
  for (let left = stepCount - 1; left > 0 && next !== undefined; left -= 1)
    next = neighbour(scheme, { height: heightOf(next), direction }, lockedRoles);
  if (next !== undefined) return next;
  const end = step === 'promote' ? 'highest' : 'lowest';
  const message =
    stepCount === 1
      ? `Member ${member.userId} already has the ${end} rank that can be given.`
      : `Member ${member.userId} is fewer than ${stepCount} ranks from the ${end} one that can be given.`;
  throw new RankdError('no_further_rank', message);
}

/**
 * The next rung above or below a height; `undefined` if there is none. Throws `ambiguous_rank`, and `platform_unavailable` if that
 * depends on which role is the base role.
 */
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
  if (target === undefined && !isUp && scheme.roles.some(isUnclear)) throw undecided();
  if (target !== undefined && twins.length > 0) throw ambiguousStep(direction, [target, ...twins]);
  return target;
}

/** A step names no role, so its error lists the roles that can be named. */
function ambiguousStep(direction: 'up' | 'down', roles: [Role, ...Role[]]): RankdError {
  const message = `The next rank ${direction} is ${roles[0].rank}, which more than one role has. Set one of them by its role id instead: ${listRoles(roles, ({ id }) => id)}.`;
  return new RankdError('ambiguous_rank', message, { hint: 'rankd rank set USER ROLE_ID' });
}

/**
 * The roles for steps up and down, ascending by rank. Locked roles are left out, because no change can give or take
 * them.
 */
export function rungs(scheme: RoleScheme, lockedRoles: number[]): Role[] {
  return givableRoles(scheme).filter((role) => !isNamed(role, lockedRoles));
}
