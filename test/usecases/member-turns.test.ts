import { expect, test } from 'vitest';
import { MemberTurns } from '../../src/usecases/member-turns.ts';

const member = 1001;
const calledOff = AbortSignal.abort(new Error('called off'));

test.each([
  ['somebody is before them', true],
  ['nobody is', false],
])('who is called off before their turn begins nothing, where %s', async (_, isBusy) => {
  const turns = new MemberTurns();
  const { promise: first, resolve: end } = Promise.withResolvers<void>();
  const before = isBusy ? turns.run(member, new AbortController().signal, () => first) : undefined;
  let isBegun = false;
  const begin = async () => {
    isBegun = true;
  };
  await expect(turns.run(member, calledOff, begin)).rejects.toThrow('called off');
  expect(isBegun).toBe(false);
  expect(turns.isBusy(member)).toBe(isBusy);
  end();
  await before;
  await expect.poll(() => turns.isBusy(member)).toBe(false);
});
