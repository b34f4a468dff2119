import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokenBuckets } from '../../src/http/token-buckets.ts';

const rates = fc.record({ perMinute: fc.integer({ min: 1, max: 10_000 }), burst: fc.integer({ min: 1, max: 500 }) });
const waits = fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 1, maxLength: 300 });

function bucketsAt(clock: { ms: number }, most = 10): TokenBuckets {
  return new TokenBuckets({ monotonic: () => clock.ms }, most);
}

test('in any period, a bucket allows at most a burst plus the refill of that period', () => {
  fc.assert(
    fc.property(rates, waits, (rate, pauses) => {
      const clock = { ms: 0 };
      const buckets = bucketsAt(clock);
      const passed: number[] = [];
      for (const pause of pauses) {
        clock.ms += pause;
        if (buckets.take('a', rate).isAllowed) passed.push(clock.ms);
      }
      passed.forEach((from, first) => {
        const most = rate.burst + ((passed.at(-1) ?? 0) - from) * (rate.perMinute / 60_000);
        expect(passed.length - first).toBeLessThanOrEqual(Math.floor(most + 1e-6));
      });
    }),
  );
});

test('a caller is admitted exactly after the reported wait, and not a millisecond earlier', () => {
  fc.assert(
    fc.property(rates, (rate) => {
      const clock = { ms: 0 };
      const buckets = bucketsAt(clock);
      for (let count = 0; count < rate.burst; count += 1) expect(buckets.take('a', rate).isAllowed).toBe(true);
      const { isAllowed, left, msToNext } = buckets.take('a', rate);
      expect([isAllowed, left]).toEqual([false, 0]);
      clock.ms += Math.ceil(msToNext) - 1;
      expect(buckets.take('a', rate).isAllowed).toBe(false);
      clock.ms += 1.001;
      expect(buckets.take('a', rate).isAllowed).toBe(true);
    }),
  );
});

test('an idle period refills at most one burst, and buckets do not affect each other', () => {
  const clock = { ms: 0 };
  const buckets = bucketsAt(clock);
  const rate = { perMinute: 60, burst: 3 };
  const pass = (name: string) => Array.from({ length: 5 }, () => buckets.take(name, rate).isAllowed).filter(Boolean);
  expect(pass('a')).toHaveLength(3);
  expect(pass('b')).toHaveLength(3);
  clock.ms += 3_600_000;
  expect(pass('a')).toHaveLength(3);
});

test('any number of callers uses bounded memory, and buckets in use are not dropped', () => {
  const buckets = bucketsAt({ ms: 0 }, 100);
  const rate = { perMinute: 1, burst: 1 };
  for (let count = 0; count < 10_000; count += 1) {
    buckets.take(`caller ${count}`, rate);
    expect(buckets.take('busy', rate).isAllowed).toBe(count === 0);
  }
  expect(buckets.size).toBeLessThanOrEqual(100);
  for (let count = 9_951; count < 10_000; count += 1) {
    expect(buckets.take(`caller ${count}`, rate).isAllowed).toBe(false);
  }
});
