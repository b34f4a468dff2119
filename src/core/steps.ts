/** From one set of roles to another: role ids, ascending, base role included. */
export interface Goal {
  from: number[];
  to: number[];
}

export interface Step {
  kind: 'assign' | 'unassign';
  roleId: number;
}

/** The writes from one set of roles to the other. Giving comes first: no moment leaves the member without a role. */
export function steps({ from, to }: Goal): Step[] {
  return [
    ...to.filter((id) => !from.includes(id)).map((roleId): Step => ({ kind: 'assign', roleId })),
    ...from.filter((id) => !to.includes(id)).map((roleId): Step => ({ kind: 'unassign', roleId })),
  ];
}

/** The same way back. */
export function reversed({ from, to }: Goal): Goal {
  return { from: to, to: from };
}

/** True where `seen` (role ids) shows the step's effect. */
export function hasTakenEffect(step: Step, seen: number[]): boolean {
  return seen.includes(step.roleId) === (step.kind === 'assign');
}

/**
 * What is left to do for a member seen with `seen`; roles the goal does not touch do not count. `undefined` where the member
 * is in none of the states on the way: somebody else has changed these roles since.
 */
export function stepsLeft(goal: Goal, seen: number[]): Step[] | undefined {
  const all = steps(goal);
  const left = all.filter((step) => !hasTakenEffect(step, seen));
  const gaveNotAll = left.some((step) => step.kind === 'assign');
  const tookSome = all.some((step) => step.kind === 'unassign' && hasTakenEffect(step, seen));
  return gaveNotAll && tookSome ? undefined : left;
}
