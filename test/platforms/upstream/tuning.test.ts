import { expect, test } from 'vitest';
import { backOffMs, defaultTuning } from '../../../src/platforms/upstream/client.ts';

test.each([
  [0, 250],
  [1, 500],
  [3, 2_000],
  [4, 4_000],
  [30, 4_000],
])('after %d retries, the waits of many callers are spread evenly from 0 to %d ms', (tries, maxMs) => {
  const waits = Array.from({ length: 4_000 }, () => backOffMs(defaultTuning, tries));
  expect(Math.max(...waits)).toBeLessThanOrEqual(maxMs);
  for (const tenth of Array.from({ length: 10 }, (_, index) => (index * maxMs) / 10)) {
    const inTenth = waits.filter((ms) => ms >= tenth && ms < tenth + maxMs / 10);
    expect(inTenth.length).toBeGreaterThan(200);
  }
});
