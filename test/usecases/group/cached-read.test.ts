import { expect, test } from 'vitest';
import { RankdError } from '../../../src/base/errors.ts';
import type { CallContext } from '../../../src/ports/index.ts';
import { CachedRead } from '../../../src/usecases/group/cached-read.ts';
import { ManualClock } from '../../support/manual-clock.ts';

class CountingClock extends ManualClock {
  asked = 0;

  override monotonic(): number {
    this.asked += 1;
    return super.monotonic();
  }
}

function callOf(lane: string, signal = new AbortController().signal): CallContext {
  return { lane, signal, deadlineAt: Number.POSITIVE_INFINITY };
}

test('after a failed read, the waiting callers retry one at a time, and the first success serves all others', async () => {
  const clock = new CountingClock();
  const tried: string[] = [];
  const roles = new CachedRead(clock, 1_000, async ({ lane }) => {
    tried.push(lane);
    await null;
    if (lane !== '300') throw new RankdError('platform_busy', 'no time is left');
    return lane;
  });
  const results = await Promise.allSettled(Array.from({ length: 500 }, (_, index) => roles.get(callOf(String(index)))));
  expect(tried).toEqual(Array.from({ length: 301 }, (_, index) => String(index)));
  expect(results.map(({ status }) => status)).toEqual([
    ...Array(300).fill('rejected'),
    ...Array(200).fill('fulfilled'),
  ]);
  expect(clock.asked).toBeLessThan(5 * 500);
});

test('a caller that gives up while waiting neither reads nor delays the callers behind it', async () => {
  const first = Promise.withResolvers<string>();
  const reads = [first.promise, Promise.resolve('second')];
  const roles = new CachedRead(
    new ManualClock(),
    1_000,
    () => reads.shift() ?? Promise.reject(new Error('a third read')),
  );
  const leaving = new AbortController();
  const results = Promise.allSettled(
    [callOf('a'), callOf('b', leaving.signal), callOf('c')].map((call) => roles.get(call)),
  );
  leaving.abort(new Error('gone'));
  first.reject(new Error('Roblox hangs'));
  expect(await results).toMatchObject([{ status: 'rejected' }, { reason: { message: 'gone' } }, { value: 'second' }]);
});
