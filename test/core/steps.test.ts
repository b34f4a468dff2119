import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Goal, hasTakenEffect, reversed, type Step, steps, stepsLeft } from '../../src/core/steps.ts';

const ids = [11, 22, 33, 44, 55, 66];
const arbitraryGoal: fc.Arbitrary<Goal> = fc.record({ from: fc.subarray(ids), to: fc.subarray(ids) });
/** These roles are in no goal. */
const arbitraryOthers = fc.subarray([1, 2 ** 40, 99]);

describe('the steps from one set of roles to another', () => {
  test('lead from one to the other and write each role at most once', () => {
    fc.assert(
      fc.property(arbitraryGoal, (goal) => {
        const all = steps(goal);
        expect(stateAfter(goal.from, all)).toEqual(sorted(goal.to));
        expect(new Set(all.map((step) => step.roleId)).size).toBe(all.length);
      }),
    );
  });

  test('give before they take', () => {
    fc.assert(
      fc.property(arbitraryGoal, (goal) => {
        const kinds = steps(goal).map((step) => step.kind);
        expect(kinds).toEqual([...kinds].sort()); // "assign" sorts before "unassign"
      }),
    );
  });

  test('are empty if nothing changes', () => {
    expect(steps({ from: ids, to: [...ids].reverse() })).toEqual([]);
  });

  test('lead back if reversed, and are the same if reversed twice', () => {
    fc.assert(
      fc.property(arbitraryGoal, (goal) => {
        expect(reversed(reversed(goal))).toEqual(goal);
        expect(stateAfter(goal.to, steps(reversed(goal)))).toEqual(sorted(goal.from));
      }),
    );
  });

  test('have taken effect exactly if their effect is seen', () => {
    expect(hasTakenEffect({ kind: 'assign', roleId: 11 }, [11])).toBe(true);
    expect(hasTakenEffect({ kind: 'assign', roleId: 11 }, [22])).toBe(false);
    expect(hasTakenEffect({ kind: 'unassign', roleId: 11 }, [22])).toBe(true);
    expect(hasTakenEffect({ kind: 'unassign', roleId: 11 }, [11])).toBe(false);
  });
});

describe('the remaining steps', () => {
  test('are exactly the rest after every prefix, whatever other roles the member holds', () => {
    fc.assert(
      fc.property(arbitraryGoal, arbitraryOthers, (goal, others) => {
        const all = steps(goal);
        for (let taken = 0; taken <= all.length; taken++) {
          const seen = [...others, ...stateAfter(goal.from, all.slice(0, taken))];
          expect(stepsLeft(goal, seen)).toEqual(all.slice(taken));
        }
      }),
    );
  });

  test('of a compensation exactly undo every prefix', () => {
    fc.assert(
      fc.property(arbitraryGoal, (goal) => {
        const all = steps(goal);
        for (let taken = 0; taken <= all.length; taken++) {
          const seen = stateAfter(goal.from, all.slice(0, taken));
          const back = stepsLeft(reversed(goal), seen);
          expect(back).toHaveLength(taken);
          expect(stateAfter(seen, back ?? [])).toEqual(sorted(goal.from));
        }
      }),
    );
  });

  test('are unknown in every state that is not reachable by giving, then taking', () => {
    fc.assert(
      fc.property(arbitraryGoal, fc.subarray(ids), (goal, picked) => {
        const touched = new Set(steps(goal).map((step) => step.roleId));
        const untouched = goal.from.filter((id) => !touched.has(id));
        const seen = sorted([...untouched, ...picked.filter((id) => touched.has(id))]);
        const left = stepsLeft(goal, seen);
        expect(left !== undefined).toBe(statesOnTheWay(goal).has(String(seen)));
        if (left !== undefined) expect(stateAfter(seen, left)).toEqual(sorted(goal.to));
      }),
    );
  });

  test('are unknown if the old role is gone and the new one is missing', () => {
    expect(stepsLeft({ from: [1, 11], to: [1, 22] }, [1])).toBeUndefined();
  });
});

function stateAfter(held: number[], taken: Step[]): number[] {
  const roles = new Set(held);
  for (const { kind, roleId } of taken) kind === 'assign' ? roles.add(roleId) : roles.delete(roleId);
  return sorted([...roles]);
}

/**
 * Returns every state that can occur on the way: first the missing roles are given one at a time, then the surplus ones
 * are taken.
 */
function statesOnTheWay({ from, to }: Goal): Set<string> {
  const known = new Set<string>();
  const open = [sorted(from)];
  for (let held = open.pop(); held !== undefined; held = open.pop()) {
    const here = held;
    if (known.has(String(here))) continue;
    known.add(String(here));
    const lacking = to.filter((id) => !here.includes(id));
    const surplus = here.filter((id) => !to.includes(id));
    if (lacking.length > 0) open.push(...lacking.map((id) => sorted([...here, id])));
    else open.push(...surplus.map((id) => here.filter((other) => other !== id)));
  }
  return known;
}

function sorted(list: number[]): number[] {
  return [...list].sort((a, b) => a - b);
}
