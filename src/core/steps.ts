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
