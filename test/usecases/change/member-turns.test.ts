import { expect, test } from 'vitest';
import { MemberTurns, maxOfALane } from '../../../src/usecases/change/member-turns.ts';

const member = 1001;
const calledOff = AbortSignal.abort(new Error('called off'));
const { signal } = new AbortController();

test.each([
  ['another caller is before them', true],
  ['no caller is', false],
])('a caller who gives up before their turn blocks no other, and lets no other pass, if %s', async (_, isBusy) => {
  const turns = new MemberTurns();
  const before = isBusy ? turns.arrive(member, 'a') : undefined;
  {
    using given = turns.arrive(member, 'a');
    await expect(given.comes(calledOff)).rejects.toThrow('called off');
  }
  using next = turns.arrive(member, 'a');
  let isHere = false;
  const coming = next.comes(signal).then(() => {
    isHere = true;
  });
  if (before !== undefined) {
    await new Promise(setImmediate);
    expect(isHere).toBe(false);
    before[Symbol.dispose]();
  }
  await coming;
});

test('once everyone is through, who arrives is the first again', async () => {
  const turns = new MemberTurns();
  {
    using turn = turns.arrive(member, 'a');
    await turn.comes(signal);
  }
  await new Promise(setImmediate);
  expect(turns.arrive(member, 'a').isFirst).toBe(true);
});

test('a caller who arrives after the first has finished still waits for those in between', async () => {
  const turns = new MemberTurns();
  const first = turns.arrive(member, 'a');
  const second = turns.arrive(member, 'a');
  first[Symbol.dispose]();
  await second.comes(signal);
  using third = turns.arrive(member, 'a');
  let isHere = false;
  const coming = third.comes(signal).then(() => {
    isHere = true;
  });
  await new Promise(setImmediate);
  expect(isHere).toBe(false);
  second[Symbol.dispose]();
  await coming;
});

test("a lane has its share of a member's line: for each that leaves, one more may come", () => {
  const turns = new MemberTurns();
  const turnsTaken = Array.from({ length: maxOfALane }, () => turns.arrive(member, 'a'));
  const isCrowded = () => turns.isCrowded(member, 'a');
  expect([isCrowded(), turns.isCrowded(member, 'b'), turns.isCrowded(1002, 'a')]).toEqual([true, false, false]);
  turnsTaken.pop()?.[Symbol.dispose]();
  expect(isCrowded()).toBe(false);
  turnsTaken.push(turns.arrive(member, 'a'));
  expect(isCrowded()).toBe(true);
  for (const turn of turnsTaken) turn[Symbol.dispose]();
  expect(isCrowded()).toBe(false);
});
