import { setImmediate as turn } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { ToldLimits } from '../../src/http/told-limits.ts';
import type { LimitStore } from '../../src/ports/index.ts';

test('what waits to be told is bounded, though callers make up networks while the store does not answer', async () => {
  let isThere = false;
  const names = new Set<string>();
  const spend = vi.fn<LimitStore['spend']>(async (spent) => {
    if (!isThere) throw new Error('the store does not answer');
    for (const { name } of spent) names.add(name);
    return spent.map(({ burst }) => burst);
  });
  const store = { spend } as Partial<LimitStore> as LimitStore;
  const told = new ToldLimits({ store, clock: { sleep: () => turn(), monotonic: () => 0 } }, () => undefined);
  for (let network = 0; network < 30_000; network += 1)
    told.note({ name: `failed-auth ${network}`, perMinute: 60, burst: 60 });
  await expect.poll(() => spend.mock.calls.length).toBeGreaterThan(1);
  isThere = true;
  for (let turns = 0; turns < 100; turns += 1) await turn(); // in each of them, a thousand could be told
  expect(names.size).toBe(10_000);
  await told.close();
});
