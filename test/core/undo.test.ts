import { expect, test } from 'vitest';
import type { RankChange } from '../../src/core/model.ts';
import { tookEffect, undoing } from '../../src/core/undo.ts';
import { newChange } from '../contracts/store/samples.ts';

/** A member's changes, oldest first, each named and from the state before it to the next. `x<y`: x is an undo of y. */
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

function told(names: string, selected: string): unknown {
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
  ['the only change', 'a', 'a', ['before', 'a']],
  ['several changes go back to before the earliest', 'a b c', 'a b c', ['before', 'a']],
  ['what was before them stays', 'x a b', 'a b', ['before', 'a']],
  ['a change of somebody else in between goes with them and is named', 'a x b', 'a b', ['before', 'a', 'x']],
  ['a newer change of somebody else keeps all of it', 'a b x', 'a b', ['since', 'x']],
  ['what is undone already is left alone', 'a b u<a', 'a b', ['already', 'undo_u']],
  [
    "the undo named is the one that did it, not a newer one of somebody else's change",
    'a u<a x v<x',
    'a',
    ['already', 'undo_u'],
  ],
  ['also where somebody has changed the member since', 'a u<a x', 'a', ['already', 'undo_u']],
  ['an undo of a part leaves the rest to be undone', 'a b u<b', 'a b', ['before', 'a']],
  ['a change after an undo is undone to after the undo', 'a u<a b', 'a b', ['before', 'b']],
  ["an undo of somebody else's newer change counts as if neither had been", 'a x u<x', 'a', ['before', 'a']],
  ['an undo is undone where it is selected', 'a b u<a', 'u', ['before', 'u']],
  ['an undo that was undone is undone already', 'a u<a v<u', 'u', ['already', 'undo_v']],
  ['and what it had taken back can be undone again', 'a u<a v<u', 'a', ['before', 'a']],
  ['over and over', 'a u<a v<u w<a', 'a', ['already', 'undo_w']],
  ['an undo of something that is not known any more is a change like any other', 'a u<gone', 'a', ['since', 'u']],
])('%s', (_, names, selected, expected) => {
  expect(told(names, selected)).toEqual(expected);
});

test('only an applied change that left other roles than it found took effect', () => {
  const change = newChange({ state: 'applied' });
  expect(tookEffect(change)).toBe(true);
  expect(tookEffect({ ...change, dryRun: true })).toBe(false);
  expect(tookEffect({ ...change, rolesAfter: change.rolesBefore })).toBe(false);
  for (const state of ['pending', 'refused', 'failed', 'unknown'] as const) {
    expect(tookEffect({ ...change, state })).toBe(false);
  }
});
