import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isRankdError, type RankdError } from '../../../src/base/errors.ts';
import type { RateReading } from '../../../src/platforms/upstream/answer.ts';
import { Gate } from '../../../src/platforms/upstream/gate.ts';
import type { ReservedSlot } from '../../../src/platforms/upstream/wait-queue.ts';
import type { CallContext } from '../../../src/ports/index.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const inTime = 3_600_000;
const own = { operation: 'tests', name: 'tests', node: 'this' };

/**
 * Creates a gate that by default allows 4 calls per 10 s, and records when each call starts. `reserve` only reserves a
 * slot; `enter` of its result then starts the call.
 */
function gateUnderTest({ limit = 4, windowMs = 10_000, maxInFlight = 1_000, burstSpacingMs = 0 } = {}) {
  const clock = new ManualClock();
  const gate = new Gate({ ...own, limit, windowMs, maxInFlight, burstSpacingMs, clock });
  const started: Array<{ name: string; at: number }> = [];
  const refused: Array<{ name: string; at: number; error: RankdError }> = [];
  const begin = (name: string, call: CallContext, slot?: ReservedSlot) => {
    gate.enter(call, slot).then(
      () => started.push({ name, at: clock.monotonic() }),
      (error: RankdError) => refused.push({ name, at: clock.monotonic(), error }),
    );
  };
  const enter = (name: string, { lane = 'one', dueInMs = inTime, signal = new AbortController().signal } = {}) => {
    begin(name, { lane, deadlineAt: clock.monotonic() + dueInMs, signal });
  };
  const reserve = async (
    name: string,
    { lane = 'one', dueInMs = inTime, signal = new AbortController().signal } = {},
  ) => {
    const deadlineAt = clock.monotonic() + dueInMs;
    const slot = await gate.reserve({ deadlineAt, lane, signal: new AbortController().signal });
    return {
      enter: () => begin(name, { lane, deadlineAt, signal }, slot),
      release: () => gate.release(slot),
    };
  };
  const enterMany = (count: number, options: Parameters<typeof enter>[1] = {}) => {
    for (let index = 0; index < count; index += 1) enter(`${index}`, options);
  };
  return { clock, gate, enter, enterMany, reserve, started, refused, startTimes: () => started.map(({ at }) => at) };
}

describe('the pace of the budget', () => {
  test('a burst within the budget starts at once, and further calls start as slots become free', async () => {
    const { clock, enterMany, startTimes } = gateUnderTest();
    enterMany(3);
    await clock.advance(2_000);
    enterMany(6);
    await clock.advance(30_000);
    expect(startTimes()).toEqual([0, 0, 0, 2_000, 10_000, 10_000, 10_000, 12_000, 20_000]);
  });

  test('no window, wherever it begins, has more calls than the limit', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 6_000 }), { maxLength: 30 }), async (gaps) => {
        const { clock, enter, startTimes } = gateUnderTest();
        for (const gap of gaps) {
          enter('any');
          await clock.advance(gap);
        }
        await clock.advance(100_000);
        const times = startTimes();
        expect(times).toHaveLength(gaps.length);
        for (const [index, at] of times.entries())
          expect((times[index + 4] ?? Infinity) - at).toBeGreaterThanOrEqual(10_000);
      }),
      { numRuns: 25 },
    );
  });
});

/**
 * Calls arrive at the gate, a call ends with the rate limit that the platform reports, time passes, or the platform
 * requests a pause.
 */
type Step = { calls: number } | { ends: RateReading } | { waitMs: number } | { pauseMs: number };

const calls = (count: number): Step => ({ calls: count });
const wait = (waitMs: number): Step => ({ waitMs });
const pause = (pauseMs: number): Step => ({ pauseMs });
const end = (remaining: number, resetMs: number): Step => ({
  ends: { limit: 4, windowMs: 10_000, remaining, resetMs },
});

describe('the count that the platform reports', () => {
  test.each<[guarantee: string, steps: Step[], starts: number[]]>([
    [
      'makes calls wait for the reset once none are left',
      [calls(1), end(0, 3_000), calls(2), wait(20_000)],
      [0, 3_000, 3_000],
    ],
    ['does not include calls in flight', [calls(3), end(3, 5_000), calls(2), wait(5_000)], [0, 0, 0, 0, 5_000]],
    ['frees no slots if responses arrive out of order', [calls(2), end(1, 5_000), end(3, 5_000), calls(4)], [0, 0, 0]],
    [
      'frees the slots of a new window at once',
      [calls(4), wait(1_000), end(3, 1_000), end(2, 1_000), end(1, 1_000), end(3, 9_000), calls(3)],
      [0, 0, 0, 0, 1_000, 1_000, 1_000],
    ],
    ['may lower the limit', [calls(1), { ends: { limit: 2, windowMs: 10_000 } }, calls(3), wait(9_000)], [0, 0]],
    [
      'may raise the limit',
      [calls(1), { ends: { limit: 9, remaining: 8, resetMs: 10_000 } }, calls(9)],
      Array(9).fill(0),
    ],
    [
      'is ignored without a reset',
      [calls(1), { ends: { remaining: 0 } }, calls(4), wait(20_000)],
      [0, 0, 0, 0, 10_000],
    ],
    [
      'is ignored without a count',
      [calls(1), { ends: { resetMs: 3_000 } }, calls(4), wait(20_000)],
      [0, 0, 0, 0, 10_000],
    ],
    [
      'delays no call longer than a window if its reset looks like an epoch',
      [calls(1), end(0, Date.UTC(2026)), calls(1), wait(10_000)],
      [0, 10_000],
    ],
    [
      'has its reset rounded up: the earliest report is the most precise, and a promised start is not postponed',
      [
        calls(4),
        wait(400),
        end(3, 9_000),
        end(2, 9_000),
        wait(500),
        end(1, 9_000),
        end(0, 9_000),
        calls(1),
        wait(20_000),
      ],
      [0, 0, 0, 0, 9_400],
    ],
    [
      'may have its reset rounded down: no call starts before the window has ended',
      [calls(4), wait(9_500), end(3, 0), end(2, 0), end(1, 0), end(0, 0), calls(1), wait(20_000)],
      [0, 0, 0, 0, 10_500],
    ],
    [
      'counts calls only once if their responses arrive out of order',
      [calls(3), wait(100), end(1, 10_000), calls(1)],
      [0, 0, 0, 100],
    ],
    [
      'does not apply to the next window if it arrives late',
      [
        calls(4),
        wait(100),
        end(3, 9_000),
        end(2, 9_000),
        end(1, 9_000),
        wait(9_000),
        end(0, 1_000),
        calls(2),
        wait(20_000),
      ],
      [0, 0, 0, 0, 9_100, 9_100],
    ],
    [
      'is not needed after a pause: calls start evenly',
      [pause(5_000), calls(4), wait(60_000)],
      [5_000, 7_500, 10_000, 12_500],
    ],
    [
      'frees the rest of the window after a short pause',
      [calls(1), end(3, 9_000), pause(100), calls(1), wait(100), end(2, 9_000), calls(3), wait(30_000)],
      [0, 100, 100, 100, 9_000],
    ],
    [
      'does not end a pause if it belongs to an earlier call',
      [calls(1), pause(5_000), end(3, 8_000), calls(1), wait(60_000)],
      [0, 5_000],
    ],
  ])('%s', async (_guarantee, steps, starts) => {
    const { clock, gate, enterMany, startTimes } = gateUnderTest();
    for (const step of steps) {
      if ('calls' in step) enterMany(step.calls);
      if ('ends' in step) gate.leave(step.ends);
      if ('pauseMs' in step) gate.close(step.pauseMs);
      await clock.advance('waitMs' in step ? step.waitMs : 0);
    }
    expect(startTimes()).toEqual(starts);
  });

  test('leaves the next window free, except for calls in flight that may count in it', async () => {
    const { clock, gate, enter, enterMany, refused } = gateUnderTest();
    enterMany(1);
    await clock.advance(0);
    gate.leave({ limit: 4, windowMs: 10_000, remaining: 3, resetMs: 9_000 });
    enterMany(1);
    await clock.advance(7_500);
    enterMany(2);
    for (const name of ['a', 'b', 'c']) enter(name, { dueInMs: 2_000 });
    await clock.advance(0);
    expect(refused.map(({ name }) => name)).toEqual(['c']);
  });

  test('is ignored after a refusal that contradicts it: calls start one at a time, at half the pace, which rises slowly', async () => {
    const { clock, gate, enterMany, startTimes } = gateUnderTest({ limit: 100, windowMs: 10_000 });
    const lie = { limit: 100, windowMs: 10_000, remaining: 99, resetMs: 10_000 };
    enterMany(1);
    await clock.advance(0);
    gate.leaveRefused(lie);
    enterMany(40);
    for (let ms = 0; ms < 2_000; ms += 10) {
      const before = startTimes().length;
      await clock.advance(10);
      for (let n = before; n < startTimes().length; n += 1) gate.leave(lie); // a good report, which the gate ignores
    }
    const gaps = startTimes().map((at, index, times) => at - (times[index - 1] ?? 0));
    expect(Math.min(...gaps.slice(1))).toBeGreaterThan(170); // at the limit, calls would be 100 ms apart
    expect(gaps.at(-1)).toBeLessThan(gaps[1] ?? 0);
    await clock.advance(25_000);
    enterMany(10);
    await clock.advance(0);
    expect(startTimes().slice(-10)).toEqual(new Array(10).fill(27_000)); // the pace is back at the limit
  });

  test('halves the pace further with each contradiction', async () => {
    const { clock, gate, enter, startTimes } = gateUnderTest({ limit: 100, windowMs: 10_000 });
    for (const name of ['first', 'second', 'third']) {
      enter(name);
      await clock.advance(3_000);
      gate.leaveRefused({ limit: 100, remaining: 99, resetMs: 10_000 });
    }
    const from = clock.monotonic();
    for (const name of ['a', 'b', 'c']) enter(name);
    await clock.advance(30_000);
    const [a = 0, b = 0] = startTimes().slice(3);
    expect(a - from).toBeGreaterThan(300);
    expect(b - a).toBeGreaterThan(300);
  });
});

describe('calls in flight', () => {
  test('never exceed the maximum; the next one starts when one has ended', async () => {
    const { clock, gate, enterMany, startTimes } = gateUnderTest({ limit: 100, maxInFlight: 2 });
    enterMany(5);
    await clock.advance(1_000);
    expect(startTimes()).toEqual([0, 0]);
    gate.leave();
    await clock.advance(500);
    gate.leave();
    gate.leave();
    await clock.advance(0);
    expect(startTimes()).toEqual([0, 0, 1_000, 1_500, 1_500]);
  });

  test('that never end do not hold waiting calls beyond their deadline', async () => {
    const { clock, enter, enterMany, refused } = gateUnderTest({ limit: 100, maxInFlight: 2 });
    enterMany(2);
    const deadline = new AbortController();
    enter('late', { signal: deadline.signal });
    await clock.advance(1_000);
    deadline.abort();
    await clock.advance(0);
    expect(refused).toMatchObject([{ name: 'late', error: { code: 'platform_busy', retryAfterMs: 1 } }]);
  });
});

describe('the order of calls', () => {
  test('a lane is served in order, and lanes take turns', async () => {
    const { clock, enter, started } = gateUnderTest({ limit: 1 });
    for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']) enter(name, { lane: name.slice(0, 1) });
    await clock.advance(100_000);
    expect(started.map(({ name }) => name)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
  });

  test('a lane that keeps calling does not overtake the waiting calls of another lane', async () => {
    const { clock, enter, started } = gateUnderTest({ limit: 1 });
    for (const name of ['a1', 'a2', 'a3']) enter(name, { lane: 'a' });
    for (const name of ['b1', 'b2', 'b3']) {
      enter(name, { lane: 'b' });
      await clock.advance(10_000);
    }
    await clock.advance(30_000);
    expect(started.map(({ name }) => name)).toEqual(['a1', 'b1', 'a2', 'b2', 'a3', 'b3']);
  });

  test('a heavy lane leaves a tenth of the budget to later callers, who also get released slots first', async () => {
    const { clock, enter, enterMany, startTimes, started } = gateUnderTest({ limit: 20 });
    enterMany(30);
    await clock.advance(1_000);
    expect(startTimes()).toHaveLength(18);
    enterMany(3, { lane: 'two' });
    await clock.advance(0);
    expect(startTimes().slice(18)).toEqual([1_000, 1_000]);
    enter('after the others', { lane: 'one' });
    await clock.advance(9_000);
    expect(started.slice(20, 22).map(({ name }) => name)).toEqual(['2', '18']);
    await clock.advance(60_000);
    expect(started.at(-1)?.name).toBe('after the others');
    expect(started).toHaveLength(34);
  });

  test('a heavy lane leaves fewer and fewer slots as the window ends, but always one', async () => {
    const { clock, enterMany, startTimes } = gateUnderTest({ limit: 40 });
    enterMany(60);
    await clock.advance(1_000);
    expect(startTimes()).toHaveLength(36);
    await clock.advance(8_999);
    expect(startTimes()).toHaveLength(39);
    enterMany(1, { lane: 'two' });
    await clock.advance(0);
    expect(startTimes()).toHaveLength(40);
  });

  test('three lanes with too much demand always leave slots to a fourth, and use up the rest', async () => {
    const { clock, enter, started } = gateUnderTest({ limit: 100 });
    for (let ms = 0; ms < 10_000; ms += 50) {
      for (const lane of ['a', 'b', 'c']) enter(lane, { lane, dueInMs: 3_000 });
      if (ms % 2_000 === 1_950) enter('single', { lane: 'd' });
      await clock.advance(50);
    }
    const singles = started.filter(({ name }) => name === 'single').map(({ at }) => at);
    expect(singles).toEqual([1_950, 3_950, 5_950, 7_950, 9_950]);
    expect(started.filter(({ at }) => at < 10_000).length).toBeGreaterThanOrEqual(99);
  });

  test('neither a heavy lane nor the first calls start in a burst that delays others', async () => {
    const { clock, gate, enterMany, startTimes } = gateUnderTest({ limit: 100, windowMs: 60_000, burstSpacingMs: 20 });
    enterMany(10);
    await clock.advance(199);
    expect(startTimes()).toEqual([0, 20, 40, 60, 80, 100, 120, 140, 160, 180]);
    for (let accepted = 0; accepted < 50; accepted += 1) gate.accepted();
    enterMany(40);
    await clock.advance(1);
    expect(startTimes()).toHaveLength(50); // half of the limit: the lane's fair share
    enterMany(30);
    await clock.advance(100);
    expect(startTimes()).toHaveLength(61);
    await clock.advance(500);
    expect(startTimes()).toHaveLength(80);
  });

  test.each<[string, Record<string, number>]>([
    ['one that wants a little more than half', { a: 160, b: 140, c: 140 }],
    ['one that wants most of it', { a: 200, b: 60, c: 60, d: 60, e: 60 }],
  ])('lanes with too much demand share the budget fairly for minutes, including %s', async (_what, asked) => {
    const clock = new ManualClock();
    const gate = new Gate({ ...own, limit: 300, clock });
    const given = new Map<string, number>();
    const minutes = 5;
    const calls = Object.entries(asked)
      .flatMap(([lane, count]) =>
        Array.from({ length: count * minutes }, (_, n) => ({ lane, at: (n * 60_000) / count })),
      )
      .sort((one, other) => one.at - other.at);
    for (const { lane, at } of calls) {
      await clock.advance(at - clock.monotonic());
      gate.enter({ lane, deadlineAt: at + 20_000, signal: new AbortController().signal }).then(
        () => {
          given.set(lane, (given.get(lane) ?? 0) + 1);
          gate.leave();
        },
        () => undefined, // no slot in time
      );
    }
    await clock.advance(60_000);
    const fair = (300 * minutes) / given.size;
    for (const [lane, count] of Object.entries(asked)) {
      expect(given.get(lane), lane).toBeGreaterThan(0.5 * Math.min(count * minutes, fair));
    }
  });

  test('a call for a change that has begun is not delayed by the demand of its lane', async () => {
    const { clock, gate, enterMany, startTimes } = gateUnderTest({ limit: 20 });
    enterMany(18);
    await clock.advance(0);
    expect(startTimes()).toHaveLength(18);
    const reservation = { [Symbol.dispose]: () => undefined };
    await gate.enter({ lane: 'one', deadlineAt: 1_000, signal: new AbortController().signal, reservation });
  });

  test('a call does not overtake waiting calls of its lane, although the lane got little recently', async () => {
    const { clock, enter, enterMany, started } = gateUnderTest({ limit: 20 });
    enterMany(60);
    await clock.advance(20_500);
    enter('last');
    await clock.advance(60_000);
    expect(started.at(-1)?.name).toBe('last');
  });

  test('a lane counts as heavy because of its calls within about a window, not because of older ones', async () => {
    const { clock, enterMany, startTimes } = gateUnderTest({ limit: 20 });
    enterMany(18);
    await clock.advance(20_000);
    enterMany(10);
    await clock.advance(0);
    expect(startTimes()).toHaveLength(28);
  });

  test('a call that gives up leaves its turn to the next', async () => {
    const { clock, enter, started, refused } = gateUnderTest({ limit: 1 });
    const impatient = new AbortController();
    enter('first');
    enter('second', { signal: impatient.signal });
    enter('third');
    await clock.advance(1_000);
    impatient.abort();
    await clock.advance(9_000);
    expect(started.map(({ name }) => name)).toEqual(['first', 'third']);
    expect(refused).toMatchObject([{ name: 'second', at: 1_000, error: { code: 'platform_busy' } }]);
  });

  test('a call that gives up costs other lanes no time', async () => {
    const { clock, enter, started } = gateUnderTest({ limit: 1 });
    const impatient = new AbortController();
    enter('first');
    enter('second', { lane: 'two' });
    enter('third', { lane: 'three', signal: impatient.signal });
    enter('fourth', { lane: 'four' });
    await clock.advance(1_000);
    impatient.abort();
    await clock.advance(19_000);
    expect(started).toEqual([
      { name: 'first', at: 0 },
      { name: 'second', at: 10_000 },
      { name: 'fourth', at: 20_000 },
    ]);
  });

  test('a call that gives up does not move its lane ahead of another', async () => {
    const { clock, enter, started } = gateUnderTest({ limit: 1 });
    const impatient = new AbortController();
    enter('first');
    enter('second', { lane: 'two', signal: impatient.signal });
    enter('third', { lane: 'three' });
    enter('fourth', { lane: 'two' });
    impatient.abort();
    await clock.advance(20_000);
    expect(started.map(({ name }) => name)).toEqual(['first', 'third', 'fourth']);
  });

  test('an aborted call is not admitted', async () => {
    const { clock, enter, started, refused } = gateUnderTest();
    enter('late', { signal: AbortSignal.abort() });
    await clock.advance(0);
    expect(started).toEqual([]);
    expect(refused[0]?.error).toSatisfy((error) => isRankdError(error, 'platform_unavailable'));
  });
});

describe('a call that gets no slot before its deadline', () => {
  test('is refused at once, with the actual wait', async () => {
    const { clock, enter, enterMany, refused } = gateUnderTest();
    enterMany(6);
    await clock.advance(1_000);
    enter('hasty', { dueInMs: 9_099 }); // its slot becomes free in 9 s, but timers can fire a little late
    enter('patient', { dueInMs: 9_100 });
    await clock.advance(0);
    expect(refused).toMatchObject([
      { name: 'hasty', at: 1_000, error: { code: 'platform_busy', retryAfterMs: 9_000 } },
    ]);
  });

  test('is also refused because of the calls ahead in the queue', async () => {
    const { clock, enter, refused } = gateUnderTest({ limit: 1 });
    for (const name of ['1', '2', '3', '4']) enter(name, { dueInMs: 25_000 });
    await clock.advance(0);
    expect(refused).toMatchObject([{ name: '4', at: 0, error: { retryAfterMs: 30_000 } }]);
  });

  test('is refused while it waits, as soon as the platform requests a longer pause', async () => {
    const { clock, gate, enter, started, refused } = gateUnderTest({ limit: 1 });
    enter('first');
    enter('short', { dueInMs: 15_000 });
    enter('long', { dueInMs: 60_000 });
    await clock.advance(2_000);
    gate.close(20_000);
    await clock.advance(60_000);
    expect(refused).toMatchObject([{ name: 'short', at: 2_000, error: { retryAfterMs: 20_000 } }]);
    expect(started).toMatchObject([{ name: 'first' }, { name: 'long', at: 22_000 }]);
  });
});

test('a call waits at most ten minutes for a pause, even if the platform requests a day', async () => {
  const { clock, gate, enter, started } = gateUnderTest();
  gate.close(86_400_000);
  enter('any');
  await clock.advance(600_000);
  expect(started).toHaveLength(1);
});

describe('a call or reservation after its deadline', () => {
  test('does not blame the budget if a slot is free', async () => {
    const { clock, enter, reserve, refused } = gateUnderTest();
    await clock.advance(1_000);
    enter('late', { dueInMs: -1 });
    await clock.advance(0);
    const late = { code: 'platform_unavailable', message: expect.not.stringContaining('budget') };
    expect(refused).toMatchObject([{ name: 'late', at: 1_000, error: late }]);
    await expect(reserve('late', { dueInMs: -1 })).rejects.toMatchObject(late);
  });

  test('blames the budget if no slot is free', async () => {
    const { clock, enter, enterMany, reserve, refused } = gateUnderTest();
    enterMany(4);
    await clock.advance(1_000);
    enter('late', { dueInMs: -1 });
    await clock.advance(0);
    const busy = { code: 'platform_busy', retryAfterMs: 9_000 };
    expect(refused).toMatchObject([{ name: 'late', error: busy }]);
    await expect(reserve('late', { dueInMs: -1 })).rejects.toMatchObject(busy);
  });
});

describe('a reserved slot', () => {
  const soon = { dueInMs: 5_000 };
  const busy = { code: 'platform_busy' };

  test('is refused if no slot comes free before the deadline, with the actual wait', async () => {
    const { clock, enterMany, reserve } = gateUnderTest();
    enterMany(2);
    await clock.advance(1_000);
    await reserve('third', soon);
    await reserve('fourth', soon);
    await expect(reserve('fifth', soon)).rejects.toMatchObject({ ...busy, retryAfterMs: 9_000 });
  });

  test('is granted later if it comes free before the deadline', async () => {
    const { clock, enterMany, reserve, startTimes } = gateUnderTest();
    enterMany(4);
    const patient = reserve('patient', { dueInMs: 12_000 }).then(({ enter }) => enter());
    await clock.advance(9_999);
    expect(startTimes()).toEqual([0, 0, 0, 0]);
    await clock.advance(1);
    await patient;
    await clock.advance(0);
    expect(startTimes()).toEqual([0, 0, 0, 0, 10_000]);
  });

  test('is granted to a heavy lane only while a tenth of the budget is left to others', async () => {
    const { reserve } = gateUnderTest({ limit: 20 });
    for (let number = 0; number < 18; number += 1) await reserve(`${number}`, { dueInMs: 4_000 });
    await expect(reserve('one too many', { dueInMs: 4_000 })).rejects.toThrow('rate limit for tests is used up');
    await reserve('of another lane', { lane: 'two', dueInMs: 5_000 });
  });

  test('stays reserved for its call, whichever calls come first', async () => {
    const { clock, enter, reserve, started, refused } = gateUnderTest({ limit: 2 });
    const reserved = await reserve('reserved', soon);
    for (const name of ['a', 'b']) enter(name, { ...soon, lane: name });
    await clock.advance(4_000);
    reserved.enter();
    await clock.advance(0);
    expect(started).toEqual([
      { name: 'a', at: 0 },
      { name: 'reserved', at: 4_000 },
    ]);
    expect(refused).toMatchObject([{ name: 'b', at: 0 }]);
  });

  test('is refused if it would make a waiting call late', async () => {
    const { clock, enter, reserve, started } = gateUnderTest({ limit: 1 });
    enter('first');
    enter('waits', { dueInMs: 15_000 });
    await clock.advance(0);
    await expect(reserve('newcomer', { dueInMs: 12_000 })).rejects.toMatchObject(busy);
    await clock.advance(10_000);
    expect(started).toMatchObject([{ name: 'first' }, { name: 'waits', at: 10_000 }]);
  });

  test('delays no later call longer than if its call started at once', async () => {
    const { clock, enter, reserve, started } = gateUnderTest({ limit: 1 });
    const reserved = await reserve('reserved', soon);
    enter('waits', { dueInMs: 12_000, lane: 'two' });
    reserved.enter();
    await clock.advance(10_000);
    expect(started).toEqual([
      { name: 'reserved', at: 0 },
      { name: 'waits', at: 10_000 },
    ]);
  });

  test('that is released is free at once for a waiting call', async () => {
    const { clock, enter, reserve, started } = gateUnderTest({ limit: 1 });
    const unused = await reserve('unused', soon);
    await expect(reserve('too early', soon)).rejects.toMatchObject(busy);
    enter('waits', { dueInMs: 20_000, lane: 'two' });
    await clock.advance(2_000);
    unused.release();
    await clock.advance(0);
    expect(started).toEqual([{ name: 'waits', at: 2_000 }]);
  });

  test('serves one call: a second call with it waits like any other', async () => {
    const { clock, reserve, started, refused } = gateUnderTest({ limit: 2 });
    const twice = await reserve('twice', soon);
    await reserve('other', soon);
    twice.enter();
    twice.enter();
    await clock.advance(0);
    expect([started.length, refused.length]).toEqual([1, 1]);
  });

  test('can still be released if its call was aborted before it entered', async () => {
    const { clock, reserve, refused } = gateUnderTest({ limit: 1 });
    const late = await reserve('late', { ...soon, signal: AbortSignal.abort() });
    late.enter();
    await clock.advance(0);
    expect(refused).toHaveLength(1);
    late.release();
    await reserve('next', soon);
  });

  test('is returned if its call enters after the deadline', async () => {
    const { clock, enter, reserve, started, refused } = gateUnderTest({ limit: 1 });
    const late = await reserve('late', soon);
    await clock.advance(5_001);
    late.enter();
    enter('next', { lane: 'two' });
    await clock.advance(0);
    expect([started, refused]).toMatchObject([[{ name: 'next', at: 5_001 }], [{ name: 'late' }]]);
  });

  test('lets its call start as soon as a pause ends, although no other slot is free', async () => {
    const { clock, gate, reserve, started } = gateUnderTest({ limit: 1 });
    const reserved = await reserve('reserved', { dueInMs: 60_000 });
    gate.close(2_500);
    reserved.enter();
    await clock.advance(3_000);
    expect(started).toEqual([{ name: 'reserved', at: 2_500 }]);
  });

  test('remains usable, whatever else reserves, enters, waits and gives up', async () => {
    const step = fc.record({
      kind: fc.constantFrom('reserve', 'reserve', 'plain', 'use', 'use', 'release', 'wait', 'wait'),
      ms: fc.integer({ min: 0, max: 10_000 }),
      pick: fc.nat(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
        const { clock, enter, reserve, started, refused } = gateUnderTest();
        let reserved: Array<Awaited<ReturnType<typeof reserve>> & { dueAt: number }> = [];
        const errors: unknown[] = [];
        for (const { kind, ms, pick } of steps) {
          for (const { dueAt, release } of reserved) if (dueAt < clock.monotonic()) release();
          reserved = reserved.filter(({ dueAt }) => dueAt >= clock.monotonic());
          const [one] = reserved.splice(pick % Math.max(1, reserved.length), ['use', 'release'].includes(kind) ? 1 : 0);
          if (kind === 'use') one?.enter();
          if (kind === 'release') one?.release();
          if (kind === 'plain') enter('plain', { dueInMs: ms, lane: `${pick % 3}` });
          if (kind === 'wait') await clock.advance(ms / 2);
          const dueAt = clock.monotonic() + ms;
          if (kind === 'reserve')
            reserve('reserved', { dueInMs: ms }).then(
              (slot) => reserved.push({ ...slot, dueAt }),
              (error) => errors.push(error),
            );
        }
        for (const { release } of reserved) release();
        await clock.advance(100_000);
        expect(refused.filter(({ name }) => name === 'reserved')).toEqual([]);
        for (const error of errors) expect(error).toMatchObject(busy);
        const times = started.map(({ at }) => at);
        for (const [index, at] of times.entries())
          expect((times[index + 4] ?? Infinity) - at).toBeGreaterThanOrEqual(10_000);
      }),
      { numRuns: 100 },
    );
  });
});
