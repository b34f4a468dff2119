import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type Account,
  countTowardLane,
  finish,
  openAccount,
  returnSlot,
  slotsOf,
  spendAll,
  startReserved,
  stillSpent,
} from '../../../src/platforms/upstream/budget.ts';
import { grant, type SlotRequest } from '../../../src/platforms/upstream/grant.ts';

const windowMs = 10_000;

function account(limit = 4): Account {
  return { ...openAccount({ limit, windowMs, burstSpacingMs: 0 }), caution: 0 };
}

const start: SlotRequest = { kind: 'start', isHeavy: false, isBegun: false, until: 0, slotAt: 0 };

/** Requests slots for `count` calls, and returns the number that can start. */
function ask(
  shared: Account,
  now: number,
  { node = 'a', count = 1, waiting = count }: { node?: string; count?: number; waiting?: number } = {},
): number {
  return grant(shared, now, { node, inFlight: 0, waiting, requests: Array.from({ length: count }, () => start) })
    .length;
}

const free = (shared: Account, now: number) => shared.limit - slotsOf(stillSpent(shared, now));

test('no window, wherever it begins, has more starts than the limit, whatever nodes request, reserve, use and return', () => {
  const step = fc.record({
    kind: fc.constantFrom('start', 'start', 'reserve', 'reserve', 'use', 'use', 'return', 'wait', 'wait'),
    node: fc.constantFrom('a', 'b', 'c'),
    count: fc.integer({ min: 1, max: 5 }),
    ms: fc.integer({ min: 0, max: 9_000 }),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 80 }), (steps) => {
      const shared = account();
      const starts: number[] = [];
      const reserved: Array<{ by: string; at: number; until: number }> = [];
      let now = 0;
      for (const { kind, node, count, ms } of steps) {
        if (kind === 'wait') now += ms;
        if (kind === 'start') for (let n = ask(shared, now, { node, count }); n > 0; n -= 1) starts.push(now);
        if (kind === 'reserve') {
          const until = now + ms;
          const requests = [{ ...start, kind: 'reserve' as const, until }];
          for (const at of grant(shared, now, { node, inFlight: 0, waiting: 1, requests }))
            reserved.push({ by: node, at, until });
        }
        const slot = kind === 'use' || kind === 'return' ? reserved.shift() : undefined;
        if (slot === undefined) continue;
        if (kind === 'use' && now <= slot.until) {
          startReserved(shared, now, slot);
          starts.push(now);
        } else returnSlot(shared, slot);
      }
      for (const [index, at] of starts.entries())
        expect((starts[index + 4] ?? Number.POSITIVE_INFINITY) - at).toBeGreaterThanOrEqual(windowMs);
    }),
    { numRuns: 300 },
  );
});

test('free slots go to nodes with waiting calls, first to the one with the fewest per lane', () => {
  const node = fc.record({ waiting: fc.integer({ min: 0, max: 60 }), lanes: fc.integer({ min: 1, max: 4 }) });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 100 }),
      fc.array(node, { minLength: 2, maxLength: 5 }),
      fc.array(fc.record({ node: fc.nat(), count: fc.integer({ min: 1, max: 9 }) }), { minLength: 60, maxLength: 60 }),
      (limit, nodes, requests) => {
        const shared = account(limit);
        const all = nodes.map((one, index) => ({ ...one, id: `node${index}`, taken: 0 }));
        for (const { id, lanes, waiting } of all) {
          for (let lane = 0; lane < lanes; lane += 1) countTowardLane(shared, 0, { lane: `${lane}`, node: id });
          ask(shared, 0, { node: id, count: 0, waiting });
        }
        const rounds = [
          ...requests.map(({ node, count }) => ({ at: node % all.length, count })),
          ...all.map((_, at) => ({ at, count: 60 })),
        ];
        for (const { at, count } of [...rounds, ...rounds]) {
          const one = all[at];
          if (one === undefined) continue;
          const waiting = one.waiting - one.taken;
          one.taken += ask(shared, 0, { node: one.id, count: Math.min(count, waiting), waiting });
        }
        const wanted = all.reduce((sum, { waiting }) => sum + waiting, 0);
        expect(all.reduce((sum, { taken }) => sum + taken, 0)).toBe(Math.min(limit, wanted));
        for (const poor of all.filter(({ taken, waiting }) => taken < waiting))
          for (const rich of all) expect(rich.taken / rich.lanes).toBeLessThanOrEqual((poor.taken + 1) / poor.lanes);
      },
    ),
    { numRuns: 200 },
  );
});

test('slots for the expected demand of other nodes are left to them until the window ends, and then go to any caller', () => {
  const shared = account(20);
  for (let second = 0; second < 5; second += 1) {
    countTowardLane(shared, second * 1_000, { lane: 'few', node: 'b' });
    ask(shared, second * 1_000, { node: 'b' });
  }
  finish(shared, { limit: 20, windowMs, remaining: 15, resetMs: 5_000 }, 5_000);
  for (let times = 0; times < 40; times += 1) countTowardLane(shared, 5_000, { lane: 'many', node: 'a' });
  expect(ask(shared, 5_000, { count: 40 })).toBe(13); // two are left for b
  expect(ask(shared, 6_000, { node: 'b' })).toBe(1);
  expect(ask(shared, 9_900, { count: 40 })).toBe(1);
  expect(free(shared, 9_900)).toBe(0);
});

test('the calls in flight of a dead node are no longer counted', () => {
  const shared = account();
  grant(shared, 0, { node: 'gone', inFlight: 3, waiting: 0, requests: [] });
  grant(shared, 1_000, { node: 'a', inFlight: 1, waiting: 0, requests: [] });
  expect(shared.inFlight).toBe(4);
  grant(shared, 15_001, { node: 'a', inFlight: 1, waiting: 0, requests: [] });
  expect(shared.inFlight).toBe(1);
});

test("the platform's count applies to all nodes, and does not include calls in flight", () => {
  const shared = account(10);
  ask(shared, 0, { node: 'a', count: 3 });
  ask(shared, 0, { node: 'b', count: 2 });
  // The platform has counted 2 calls, including this one.
  finish(shared, { limit: 10, remaining: 8, resetMs: 5_000 }, 100);
  expect(free(shared, 100)).toBe(5);
  finish(shared, { limit: 10, remaining: 0, resetMs: 5_000 }, 200);
  expect(ask(shared, 200, { node: 'b' })).toBe(0);
  expect(ask(shared, 5_100, { node: 'b', count: 9 })).toBe(9);
});

test("the platform's count does not include reserved slots", () => {
  const shared = account(10);
  grant(shared, 0, { node: 'a', inFlight: 0, waiting: 1, requests: [{ ...start, kind: 'reserve', until: 1_000 }] });
  ask(shared, 0, { node: 'a' });
  finish(shared, { limit: 10, remaining: 4, resetMs: 5_000 }, 100); // another program also uses the key
  expect(free(shared, 100)).toBe(3);
});

test('an account in an unknown state lets one call start, whose response reports the remaining slots', () => {
  const shared = account();
  spendAll(shared, 0);
  expect(ask(shared, 0, { count: 3 })).toBe(1);
  finish(shared, { limit: 4, windowMs, remaining: 3, resetMs: 6_000 }, 100);
  expect(ask(shared, 100, { count: 9 })).toBe(3);

  const unreported = account();
  spendAll(unreported, 0);
  ask(unreported, 0);
  expect(ask(unreported, 9_999, { count: 3 })).toBe(0);
  expect(ask(unreported, 10_000, { count: 9 })).toBe(4);
});

test('after an account is lost, the first node can start one call, and no other node can start any', () => {
  const shared = account(20);
  for (let times = 0; times < 5; times += 1) countTowardLane(shared, 0, { lane: 'game', node: 'a' });
  ask(shared, 0, { node: 'a', count: 5 });
  finish(shared, { limit: 20, windowMs, remaining: 15, resetMs: 9_000 }, 100);
  countTowardLane(shared, 200, { lane: 'game', node: 'b' });
  spendAll(shared, 200);
  expect(ask(shared, 200, { node: 'b' })).toBe(1);
  expect(ask(shared, 200, { node: 'a' })).toBe(0);
});
