import { expect, test } from 'vitest';
import { MemberTurns, maxPerLane } from '../../../src/usecases/change/member-turns.ts';

const member = 1001;
const aborted = AbortSignal.abort(new Error('called off'));
const { signal } = new AbortController();

test.each([
  ['while behind another caller', true],
  ['as the first caller', false],
])('a caller that gives up %s blocks no later caller and lets none overtake', async (_, isBusy) => {
  const turns = new MemberTurns();
  const before = isBusy ? turns.enqueue(member, 'a') : undefined;
  {
    using given = turns.enqueue(member, 'a');
    await expect(given.waitForTurn(aborted)).rejects.toThrow('called off');
  }
  using next = turns.enqueue(member, 'a');
  let hasTurn = false;
  const waiting = next.waitForTurn(signal).then(() => {
    hasTurn = true;
  });
  if (before !== undefined) {
    await new Promise(setImmediate);
    expect(hasTurn).toBe(false);
    before[Symbol.dispose]();
  }
  await waiting;
});

test('after all callers have finished, the next one is first', async () => {
  const turns = new MemberTurns();
  {
    using turn = turns.enqueue(member, 'a');
    await turn.waitForTurn(signal);
  }
  await new Promise(setImmediate);
  expect(turns.enqueue(member, 'a').isFirst).toBe(true);
});

test('a caller that arrives after the first has finished still waits for those in between', async () => {
  const turns = new MemberTurns();
  const first = turns.enqueue(member, 'a');
  const second = turns.enqueue(member, 'a');
  first[Symbol.dispose]();
  await second.waitForTurn(signal);
  using third = turns.enqueue(member, 'a');
  let hasTurn = false;
  const waiting = third.waitForTurn(signal).then(() => {
    hasTurn = true;
  });
  await new Promise(setImmediate);
  expect(hasTurn).toBe(false);
  second[Symbol.dispose]();
  await waiting;
});

test("a lane's share of a member's queue is limited, and each caller that leaves frees one slot", () => {
  const turns = new MemberTurns();
  const turnsTaken = Array.from({ length: maxPerLane }, () => turns.enqueue(member, 'a'));
  const isFull = () => turns.isFull(member, 'a');
  expect([isFull(), turns.isFull(member, 'b'), turns.isFull(1002, 'a')]).toEqual([true, false, false]);
  turnsTaken.pop()?.[Symbol.dispose]();
  expect(isFull()).toBe(false);
  turnsTaken.push(turns.enqueue(member, 'a'));
  expect(isFull()).toBe(true);
  for (const turn of turnsTaken) turn[Symbol.dispose]();
  expect(isFull()).toBe(false);
});
