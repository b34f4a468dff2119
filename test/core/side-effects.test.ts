import { expect, test } from 'vitest';
import type { Role } from '../../src/core/model.ts';
import { sideEffects, streaksAfter } from '../../src/core/steps.ts';

const roles: Role[] = [
  { id: 1, name: 'Guest', rank: 0, kind: 'guest' },
  { id: 2, name: 'Member', rank: 1, kind: 'base' },
  ...[10, 20, 30, 40].map((id): Role => ({ id, name: `R${id}`, rank: id, kind: 'custom' })),
];
const steps = [
  { kind: 'assign', roleId: 20 },
  { kind: 'unassign', roleId: 10 },
] as const;
const none = { vanished: [], appeared: [], kept: [] };

test.each([
  ['only the roles that its steps name', [2, 10], [2, 10, 20], none],
  ['a base role that is listed only before it', [2, 10], [20], none],
  ['an unrelated role that remains', [2, 10, 30], [20, 30], { ...none, kept: [30] }],
  ['an unrelated role that vanishes', [2, 10, 30], [20], { ...none, vanished: [30] }],
  ['an unrelated role that appears', [2, 10], [2, 20, 40], { ...none, appeared: [40] }],
  ['an unknown role that appears', [10], [20, 99], { ...none, appeared: [99] }],
])('the side effects of a change are recognized: %s', (_what, before, after, effects) => {
  expect(sideEffects(roles, [...steps], { before, after })).toEqual(effects);
});

test('only a change that could have extended a streak can end it', () => {
  const gone = { ...none, vanished: [30] };
  const two = streaksAfter(streaksAfter({ vanished: 0, appeared: 0 }, gone), gone);
  expect(two.vanished).toBe(2);
  expect(streaksAfter(two, none).vanished).toBe(2);
  expect(streaksAfter(two, { ...none, kept: [30] }).vanished).toBe(0);
  expect(streaksAfter({ vanished: 0, appeared: 2 }, { ...none, appeared: [40] }).appeared).toBe(3);
  expect(streaksAfter({ vanished: 0, appeared: 2 }, none).appeared).toBe(0);
});
