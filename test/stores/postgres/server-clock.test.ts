import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { ServerClock } from '../../../src/stores/postgres/server-clock.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { postgresDatabase } from '../../support/postgres-database.ts';

const serverAt = Date.UTC(2026, 5, 1);

/**
 * Returns a clock that has read the server's time once, and a function that makes it read the time again after `ms`.
 */
async function openClock() {
  const own = new ManualClock(0);
  const clock = new ServerClock(own);
  clock.note({ askedAt: own.monotonic(), serverAt });
  const readAfter = async (ms: number, { says = ms, tookMs = 0 } = {}) => {
    await own.skip(ms);
    const askedAt = own.monotonic();
    const answer = clock.now() - ms + says + tookMs / 2;
    await own.skip(tookMs);
    clock.note({ askedAt, serverAt: answer });
  };
  return { own, clock, readAfter };
}

test("the time is the server's, advanced by this process's clock between readings", async () => {
  const { own, clock } = await openClock();
  expect(clock.now()).toBe(serverAt);
  await own.skip(1_234);
  expect(clock.now()).toBe(serverAt + 1_234);
  own.setWallClock(0);
  expect(clock.now()).toBe(serverAt + 1_234);
  // Before its first reading, the clock returns this machine's time.
  expect(new ServerClock(new ManualClock(7)).now()).toBe(7);
});

test('a jump of the server clock is followed and recorded; a slow response or drift does not count as one', async () => {
  const { own, clock, readAfter } = await openClock();
  await readAfter(60_000, { says: 60_100 });
  await readAfter(1_000, { tookMs: 3_000 });
  expect(clock.jumpedAt).toBeUndefined();
  const before = clock.now();
  await readAfter(1_000, { says: 3_600_000 });
  expect(clock.now()).toBeGreaterThanOrEqual(before + 3_600_000 - 1_000);
  expect(clock.jumpedAt).toBe(own.monotonic());
  await readAfter(5_000);
  expect(clock.jumpedAt).toBe(own.monotonic() - 5_000);
});

test('two processes with clocks hours apart store the same time', async () => {
  const { address } = await postgresDatabase();
  const records: number[] = [];
  for (const offHours of [-5, 7]) {
    const wrong = vi.spyOn(systemClock, 'now').mockImplementation(() => Date.now() + offHours * 3_600_000);
    const store = await openPostgresStore({ address, clock: systemClock });
    onTestFinished(() => store.close());
    await store.appendAudit({ at: 0, by: 'cli:ann@host', action: 'config.reload', subject: 'x', detail: {} });
    const [event] = await store.listAudit({ limit: 1 });
    records.push(event?.at ?? 0, store.clock.now());
    wrong.mockRestore();
  }
  for (const at of records) expect(Math.abs(at - Date.now())).toBeLessThan(60_000); // the server runs on this machine
});
