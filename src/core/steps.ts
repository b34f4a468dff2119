import type { Role } from './model.ts';

/** The role ids before and after a change, ascending, base role included. */
export interface Goal {
  from: number[];
  to: number[];
}

export interface Step {
  kind: 'assign' | 'unassign';
  roleId: number;
}

/**
 * Returns the writes that reach the goal. They give roles before they take any, so that the member is never left
 * without one.
 */
export function steps({ from, to }: Goal): Step[] {
  return [
    ...to.filter((id) => !from.includes(id)).map((roleId): Step => ({ kind: 'assign', roleId })),
    ...from.filter((id) => !to.includes(id)).map((roleId): Step => ({ kind: 'unassign', roleId })),
  ];
}

/** Returns the goal for a compensation. */
export function reversed({ from, to }: Goal): Goal {
  return { from: to, to: from };
}

/** True if the member's current role ids, `seen`, reflect the step. */
export function hasTakenEffect(step: Step, seen: number[]): boolean {
  return seen.includes(step.roleId) === (step.kind === 'assign');
}

/**
 * Returns the remaining steps for a member with the roles `seen` (ids), ignoring roles outside the goal. Returns
 * `undefined` if the steps can't have led to these roles, because a different change has touched them.
 */
export function stepsLeft(goal: Goal, seen: number[]): Step[] | undefined {
  const all = steps(goal);
  const left = all.filter((step) => !hasTakenEffect(step, seen));
  const isMissingSome = left.some((step) => step.kind === 'assign');
  const hasLostSome = all.some((step) => step.kind === 'unassign' && hasTakenEffect(step, seen));
  return isMissingSome && hasLostSome ? undefined : left;
}

/**
 * Returns the remaining steps if the member has fewer roles than before the change and fewer than after it, and none
 * outside the goal. Returns `undefined` for any other member.
 */
export function stepsIfTooFew(goal: Goal, seen: number[]): Step[] | undefined {
  const isTooFew = seen.length < Math.min(goal.from.length, goal.to.length);
  if (!isTooFew || holdsOthers(goal, seen)) return undefined;
  return steps(goal).filter((step) => !hasTakenEffect(step, seen));
}

/** True if the member holds none of the roles that the change gives or takes. */
export function holdsNone(goal: Goal, seen: number[]): boolean {
  return !steps(goal).some(({ roleId }) => seen.includes(roleId));
}

/** True if the member holds a role that is neither in `from` nor in `to`: a different change gave it. */
export function holdsOthers({ from, to }: Goal, seen: number[]): boolean {
  return seen.some((id) => !from.includes(id) && !to.includes(id));
}

/** The roles (ids) outside a change's steps that vanished, appeared or stayed. */
export interface SideEffects {
  vanished: number[];
  appeared: number[];
  kept: number[];
}

/**
 * Compares a member's roles (ids) before and after the steps, ignoring the roles that the steps give or take. Also
 * ignores the guest role, the base role and its candidates, which a platform may or may not list, and roles from before
 * that are missing from `roles`, because they may have been deleted.
 */
export function sideEffects(
  roles: Role[],
  steps: Step[],
  { before, after }: { before: number[]; after: number[] },
): SideEffects {
  const unlisted = roles
    .filter(({ kind }) => kind === 'base' || kind === 'unclear' || kind === 'guest')
    .map(({ id }) => id);
  const unknown = before.filter((id) => !roles.some((role) => role.id === id));
  const expected = new Set([...steps.map(({ roleId }) => roleId), ...unlisted, ...unknown]);
  const others = (ids: number[]) => ids.filter((id) => !expected.has(id));
  return {
    vanished: others(before).filter((id) => !after.includes(id)),
    appeared: others(after).filter((id) => !before.includes(id)),
    kept: others(before).filter((id) => after.includes(id)),
  };
}

/** The number of consecutive changes with each of these side effects. */
export interface Streaks {
  vanished: number;
  appeared: number;
}

/**
 * Returns the streaks after a change. A change to a member without other roles neither extends nor ends a streak of
 * vanished roles.
 */
export function streaksAfter(streaks: Streaks, { vanished, appeared, kept }: SideEffects): Streaks {
  return {
    vanished: vanished.length > 0 ? streaks.vanished + 1 : kept.length > 0 ? 0 : streaks.vanished,
    appeared: appeared.length > 0 ? streaks.appeared + 1 : 0,
  };
}
