import { expect, test } from 'vitest';
import type { RankChange } from '../../src/core/model.ts';
import { tookEffect, undoing } from '../../src/core/undo.ts';
import { newChange } from '../contracts/store/samples.ts';

/** Returns a member's changes, newest first. `names` lists them oldest first; `x<y` is a change x that undoes y. */
function timeline(names: string): RankChange[] {
  return names
    .split(' ')
    .map((name, at) => {
      const [id = '', undoOf] = name.split('<');
      const undo = undoOf === undefined ? {} : { undoOf, undoId: `undo_${id}` };
      return newChange({ id, state: 'applied', rolesBefore: [at], rolesAfter: [at + 1], ...undo });
    })
    .reverse();
}

function selectedBy(names: string, selected: string): unknown {
  const result = undoing(timeline(names), ({ id }) => selected.split(' ').includes(id));
  switch (result.kind) {
    case 'put_back':
      return ['before', result.earliest.id, ...result.between.map(({ id }) => id)];
    case 'changed_since':
      return ['since', result.by.id];
    case 'already':
      return ['already', result.undoId];
  }
}

test.each([
  ['the only change is undone', 'a', 'a', ['before', 'a']],
  ['several changes are undone back to the roles before the earliest', 'a b c', 'a b c', ['before', 'a']],
  ['earlier changes are not undone', 'x a b', 'a b', ['before', 'a']],
  ['another change in between is undone with them and named', 'a x b', 'a b', ['before', 'a', 'x']],
  ['a newer change by another caller prevents the undo', 'a b x', 'a b', ['since', 'x']],
  ['undone changes are left alone', 'a b u<a', 'a b', ['already', 'undo_u']],
  [
    'the reported undo is the one of this change, not a newer undo of another',
    'a u<a x v<x',
    'a',
    ['already', 'undo_u'],
  ],
  ['an undo is reported even if the member was changed since', 'a u<a x', 'a', ['already', 'undo_u']],
  ['a partial undo leaves the rest to be undone', 'a b u<b', 'a b', ['before', 'a']],
  ['a change after an undo is undone, but not the undo', 'a u<a b', 'a b', ['before', 'b']],
  ['an undo of a newer unselected change cancels out with it', 'a x u<x', 'a', ['before', 'a']],
  ['a selected undo is undone', 'a b u<a', 'u', ['before', 'u']],
  ['an undo that was undone is reported as undone', 'a u<a v<u', 'u', ['already', 'undo_v']],
  ['a change whose undo was undone can be undone again', 'a u<a v<u', 'a', ['before', 'a']],
  ['a change can be undone repeatedly', 'a u<a v<u w<a', 'a', ['already', 'undo_w']],
  ['an undo of a deleted change is a change like any other', 'a u<gone', 'a', ['since', 'u']],
])('%s', (_, names, selected, expected) => {
  expect(selectedBy(names, selected)).toEqual(expected);
});

test('only an applied change that altered roles took effect', () => {
  const change = newChange({ state: 'applied' });
  expect(tookEffect(change)).toBe(true);
  expect(tookEffect({ ...change, dryRun: true })).toBe(false);
  expect(tookEffect({ ...change, rolesAfter: change.rolesBefore })).toBe(false);
  for (const state of ['pending', 'refused', 'failed', 'unknown'] as const) {
    expect(tookEffect({ ...change, state })).toBe(false);
  }
});
