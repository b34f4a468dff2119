import type { Role } from './model.ts';

/** From one set of roles to another: role ids, ascending, base role included. */
export interface Goal {
  from: number[];
  to: number[];
}

export interface Step {
  kind: 'assign' | 'unassign';
  roleId: number;
}

/** The writes from one set of roles to the other. Roles are given first, so the member is never without one. */
export function steps({ from, to }: Goal): Step[] {
  return [
    ...to.filter((id) => !from.includes(id)).map((roleId): Step => ({ kind: 'assign', roleId })),
    ...from.filter((id) => !to.includes(id)).map((roleId): Step => ({ kind: 'unassign', roleId })),
  ];
}

/** The goal of a compensation. */
export function reversed({ from, to }: Goal): Goal {
  return { from: to, to: from };
}

/** True if `seen` (role ids) shows the effect of the step. */
export function hasTakenEffect(step: Step, seen: number[]): boolean {
  return seen.includes(step.roleId) === (step.kind === 'assign');
}

/**
 * The remaining steps for a member who was seen with the roles `seen` (ids). Roles outside the goal don't count.
 * `undefined` if the member is in none of the intermediate states: another change has touched these roles since.
 */
export function stepsLeft(goal: Goal, seen: number[]): Step[] | undefined {
  const all = steps(goal);
  const left = all.filter((step) => !hasTakenEffect(step, seen));
  const isMissingSome = left.some((step) => step.kind === 'assign');
  const hasLostSome = all.some((step) => step.kind === 'unassign' && hasTakenEffect(step, seen));
  return isMissingSome && hasLostSome ? undefined : left;
}

/**
 * The steps that restore lost roles of a member who was seen with fewer roles (ids) than both before and after the
 * change, although no other role was added. `undefined` for any other member.
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

/** True if the member holds a role (ids) from neither before nor after the change: someone else has given it. */
export function holdsOthers({ from, to }: Goal, seen: number[]): boolean {
  return seen.some((id) => !from.includes(id) && !to.includes(id));
}

/** The changes to roles (ids) that no step of a change names. */
export interface SideEffects {
  vanished: number[];
  appeared: number[];
  kept: number[];
}

/**
 * Compares the roles (ids) that a member holds after some of the steps with those before all of them: roles that no
 * step names should be the same. The base role does not count, because a platform may or may not list it. Nor does an
 * earlier role that is missing from `roles`: it is being deleted, or the platform denies that it exists.
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

/** The number of consecutive changes in which unrelated roles vanished, and in which some appeared. */
export interface Streaks {
  vanished: number;
  appeared: number;
}

/** A change ends a streak only if it could have extended it: a member without other roles can't lose any. */
export function streaksAfter(streaks: Streaks, { vanished, appeared, kept }: SideEffects): Streaks {
  return {
    vanished: vanished.length > 0 ? streaks.vanished + 1 : kept.length > 0 ? 0 : streaks.vanished,
    appeared: appeared.length > 0 ? streaks.appeared + 1 : 0,
  };
}
