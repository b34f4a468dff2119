import { setImmediate as turn } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { LimitReporter } from '../../src/http/throttle.ts';
import type { LimitStore } from '../../src/ports/index.ts';

test('the number of unreported counts is bounded, even if callers come from made-up networks while the store is down', async () => {
  let isThere = false;
  const names = new Set<string>();
  const spend = vi.fn<LimitStore['spend']>(async (spent) => {
    if (!isThere) throw new Error('the store does not answer');
    for (const { name } of spent) names.add(name);
    return spent.map(({ burst }) => burst);
  });
  const store = { spend } as Partial<LimitStore> as LimitStore;
  const reporter = new LimitReporter({ store, clock: { sleep: () => turn(), monotonic: () => 0 } }, () => undefined);
  for (let network = 0; network < 30_000; network += 1)
    reporter.note({ name: `failed-auth ${network}`, perMinute: 60, burst: 60 });
  await expect.poll(() => spend.mock.calls.length).toBeGreaterThan(1);
  isThere = true;
  for (let turns = 0; turns < 100; turns += 1) await turn(); // enough turns to report all names, a thousand at a time
  expect(names.size).toBe(10_000);
  await reporter.close();
});
