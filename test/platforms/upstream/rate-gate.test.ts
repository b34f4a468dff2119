import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isRankdError, type RankdError } from '../../../src/base/errors.ts';
import { RateGate } from '../../../src/platforms/upstream/rate-gate.ts';
import type { ReservedSlot } from '../../../src/platforms/upstream/wait-queue.ts';
import type { CallContext } from '../../../src/ports/index.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const inTime = 3_600_000;

/** A gate of 4 calls per 10 s whose callers note when they got in; `reserve` returns how its call enters later. */
function gateUnderTest({ limit = 4, windowMs = 10_000, maxInFlight = 1_000, burstSpacingMs = 0 } = {}) {
  const clock = new ManualClock();
  const gate = new RateGate({ name: 'tests', limit, windowMs, maxInFlight, burstSpacingMs, clock });
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
  const reserve = (name: string, { lane = 'one', dueInMs = inTime, signal = new AbortController().signal } = {}) => {
    const deadlineAt = clock.monotonic() + dueInMs;
    const slot = gate.reserve({ deadlineAt, lane });
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
  test('a burst within the budget starts at once, the rest as its slots come free', async () => {
    const { clock, enterMany, startTimes } = gateUnderTest();
    enterMany(3);
    await clock.advance(2_000);
    enterMany(6);
    await clock.advance(30_000);
    expect(startTimes()).toEqual([0, 0, 0, 2_000, 10_000, 10_000, 10_000, 12_000, 20_000]);
  });

  test('no window, wherever it begins, sees more calls than the limit', async () => {
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

describe('what the platform says of the budget', () => {
  test('calls wait for the reset once the platform counts none left', async () => {
    const { clock, gate, enter, enterMany, startTimes } = gateUnderTest();
    enter('first');
    await clock.advance(0);
    gate.leave({ limit: 4, windowMs: 10_000, remaining: 0, resetMs: 3_000 });
    enterMany(2);
    await clock.advance(20_000);
    expect(startTimes()).toEqual([0, 3_000, 3_000]);
  });

  test('calls in flight are taken off what the platform says is left', async () => {
    const { clock, gate, enterMany, startTimes } = gateUnderTest();
    enterMany(3);
    await clock.advance(0);
    gate.leave({ limit: 4, remaining: 3, resetMs: 5_000 });
    enterMany(2);
    await clock.advance(4_999);
    expect(startTimes()).toEqual([0, 0, 0, 0]);
    await clock.advance(1);
    expect(startTimes()).toEqual([0, 0, 0, 0, 5_000]);
  });

  test('answers that arrive out of order do not give slots back', async () => {
    const { clock, gate, enterMany, startTimes } = gateUnderTest();
    enterMany(2);
    await clock.advance(0);
    gate.leave({ limit: 4, remaining: 1, resetMs: 5_000 });
    gate.leave({ limit: 4, remaining: 3, resetMs: 5_000 });
    enterMany(4);
    await clock.advance(0);
    expect(startTimes().length - 2).toBeLessThanOrEqual(1);
  });

  test('a window of the platform that began later gives its slots at once', async () => {
    const { clock, gate, enterMany, startTimes } = gateUnderTest();
    enterMany(4);
    await clock.advance(1_000);
    for (const remaining of [3, 2, 1]) gate.leave({ limit: 4, remaining, resetMs: 1_000 });
    gate.leave({ limit: 4, remaining: 3, resetMs: 9_000 });
    enterMany(3);
    await clock.advance(0);
    expect(startTimes().slice(4)).toEqual([1_000, 1_000, 1_000]);
  });

  test('a limit that the platform lowers or raises holds from the next call', async () => {
    const lowered = gateUnderTest();
    lowered.enter('first');
    await lowered.clock.advance(0);
    lowered.gate.leave({ limit: 2, windowMs: 10_000 });
    lowered.enterMany(3);
    await lowered.clock.advance(9_000);
    expect(lowered.started).toHaveLength(2);

    const raised = gateUnderTest();
    raised.enter('first');
    await raised.clock.advance(0);
    raised.gate.leave({ limit: 50, windowMs: 10_000, remaining: 49, resetMs: 10_000 });
    raised.enterMany(20);
    await raised.clock.advance(0);
    expect(raised.started).toHaveLength(21);
  });

  test.each([{ remaining: 0 }, { resetMs: 3_000 }])(
    'half of what it says of the count (%o) tells nothing',
    async (half) => {
      const { clock, gate, enter, enterMany, startTimes } = gateUnderTest();
      enter('first');
      await clock.advance(0);
      gate.leave({ limit: 4, windowMs: 10_000, ...half });
      enterMany(4);
      await clock.advance(20_000);
      expect(startTimes()).toEqual([0, 0, 0, 0, 10_000]);
    },
  );

  test('a reset that can only be an epoch holds nobody longer than a window', async () => {
    const { clock, gate, enter, startTimes } = gateUnderTest();
    enter('first');
    await clock.advance(0);
    gate.leave({ limit: 4, remaining: 0, resetMs: Date.UTC(2026, 0, 1) });
    enter('second');
    await clock.advance(10_000);
    expect(startTimes()).toEqual([0, 10_000]);
  });

  test('the end of a window is rounded up: the earliest one that is told is nearest, and nobody who was promised it waits longer', async () => {
    const { clock, gate, enterMany, startTimes } = gateUnderTest();
    enterMany(4);
    await clock.advance(400);
    for (const remaining of [3, 2]) gate.leave({ limit: 4, remaining, resetMs: 9_000 });
    await clock.advance(500);
    for (const remaining of [1, 0]) gate.leave({ limit: 4, remaining, resetMs: 9_000 });
    enterMany(1);
    await clock.advance(20_000);
    expect(startTimes().at(-1)).toBe(9_400);
  });

  test('a platform that rounds it down is not asked before its window has ended', async () => {
    const { clock, gate, enterMany, startTimes } = gateUnderTest();
    enterMany(4);
    await clock.advance(9_500);
    for (const remaining of [3, 2, 1, 0]) gate.leave({ limit: 4, windowMs: 10_000, remaining, resetMs: 0 });
    enterMany(1);
    await clock.advance(20_000);
    expect(startTimes().at(-1)).toBe(10_500);
  });

  test('calls under way keep nobody out of the next window, but for those so near its beginning that they may count in it', async () => {
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

  test('calls whose answers pass one another are counted once', async () => {
    const { clock, gate, enterMany, startTimes } = gateUnderTest();
    enterMany(3);
    await clock.advance(100);
    gate.leave({ limit: 4, remaining: 1, resetMs: 10_000 }); // the third
    enterMany(1);
    await clock.advance(0);
    expect(startTimes()).toEqual([0, 0, 0, 100]);
  });

  test('an answer from a window that has ended tells nothing of the next one', async () => {
    const { clock, gate, enterMany, startTimes } = gateUnderTest();
    enterMany(4);
    await clock.advance(100);
    for (const remaining of [3, 2, 1]) gate.leave({ limit: 4, windowMs: 10_000, remaining, resetMs: 9_000 });
    await clock.advance(9_000);
    gate.leave({ limit: 4, windowMs: 10_000, remaining: 0, resetMs: 1_000 });
    enterMany(2);
    await clock.advance(20_000);
    expect(startTimes().slice(4)).toEqual([9_100, 9_100]);
  });

  test('is not believed after a refusal that contradicts it: calls go one at a time, at half the pace, which rises slowly', async () => {
    const { clock, gate, enterMany, startTimes } = gateUnderTest({ limit: 100, windowMs: 10_000 });
    const lie = { limit: 100, windowMs: 10_000, remaining: 99, resetMs: 10_000 };
    enterMany(1);
    await clock.advance(0);
    gate.leaveRefused(lie);
    enterMany(40);
    for (let ms = 0; ms < 2_000; ms += 10) {
      const before = startTimes().length;
      await clock.advance(10);
      for (let n = before; n < startTimes().length; n += 1) gate.leave(lie); // good news, which is not believed
    }
    const gaps = startTimes().map((at, index, times) => at - (times[index - 1] ?? 0));
    expect(Math.min(...gaps.slice(1))).toBeGreaterThan(170); // evenly at the limit would be 100
    expect(gaps.at(-1)).toBeLessThan(gaps[1] ?? 0);
    await clock.advance(25_000);
    enterMany(10);
    await clock.advance(0);
    expect(startTimes().slice(-10)).toEqual(new Array(10).fill(27_000)); // the pace is back at the limit
  });

  test('is not believed at all the slower the more often it is contradicted', async () => {
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

  test('a closed gate lets nobody in, and then one after the other', async () => {
    const { clock, gate, enterMany, startTimes } = gateUnderTest();
    gate.close(5_000);
    enterMany(4);
    await clock.advance(60_000);
    expect(startTimes()).toEqual([5_000, 7_500, 10_000, 12_500]);
  });

  test('a short closure in a window that the platform counts does not shut the rest of the window', async () => {
    const { clock, gate, enter, enterMany, startTimes } = gateUnderTest();
    enter('first');
    await clock.advance(0);
    gate.leave({ limit: 4, windowMs: 10_000, remaining: 3, resetMs: 9_000 });
    gate.close(100);
    enter('second');
    await clock.advance(100);
    gate.leave({ limit: 4, windowMs: 10_000, remaining: 2, resetMs: 9_000 });
    enterMany(3);
    await clock.advance(30_000);
    expect(startTimes()).toEqual([0, 100, 100, 100, 9_000]);
  });

  test('good news from calls in flight does not open a closed gate', async () => {
    const { clock, gate, enter, startTimes } = gateUnderTest();
    enter('in flight');
    await clock.advance(0);
    gate.close(5_000);
    gate.leave({ limit: 4, remaining: 3, resetMs: 8_000 });
    enter('next');
    await clock.advance(60_000);
    expect(startTimes()).toEqual([0, 5_000]);
  });
});

describe('calls under way', () => {
  test('are never more than so many at once; the next one starts when one has ended', async () => {
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

  test('that never end do not keep those who wait beyond their deadline', async () => {
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

describe('whose turn it is', () => {
  test('a lane is served in order, and lanes take turns', async () => {
    const { clock, enter, started } = gateUnderTest({ limit: 1 });
    for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']) enter(name, { lane: name.slice(0, 1) });
    await clock.advance(100_000);
    expect(started.map(({ name }) => name)).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
  });

  test('a lane that asks for much leaves a tenth of the budget to those who come later, and what comes free goes to them first', async () => {
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

  test('what such a lane leaves shrinks until the window ends, but for one slot', async () => {
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

  test('three lanes that together ask for more than there is leave slots to a fourth, at any time, and use up the others', async () => {
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

  test('a lane that asks for much does not come in a burst that keeps the others waiting, nor do the first calls of all', async () => {
    const { clock, gate, enterMany, startTimes } = gateUnderTest({ limit: 100, windowMs: 60_000, burstSpacingMs: 20 });
    enterMany(10);
    await clock.advance(199);
    expect(startTimes()).toEqual([0, 20, 40, 60, 80, 100, 120, 140, 160, 180]);
    for (let accepted = 0; accepted < 50; accepted += 1) gate.accepted();
    enterMany(40);
    await clock.advance(1);
    expect(startTimes()).toHaveLength(50); // its fair share
    enterMany(30);
    await clock.advance(100);
    expect(startTimes()).toHaveLength(61);
    await clock.advance(500);
    expect(startTimes()).toHaveLength(80);
  });

  test.each<[string, Record<string, number>]>([
    ['one that asks for a little more than half', { a: 160, b: 140, c: 140 }],
    ['one that asks for most', { a: 200, b: 60, c: 60, d: 60, e: 60 }],
  ])('lanes that ask for more than there is share it fairly for long, also %s', async (_what, asked) => {
    const clock = new ManualClock();
    const gate = new RateGate({ name: 'tests', limit: 300, clock });
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
        () => undefined, // no room
      );
    }
    await clock.advance(60_000);
    const fair = (300 * minutes) / given.size;
    for (const [lane, count] of Object.entries(asked)) {
      expect(given.get(lane), lane).toBeGreaterThan(0.5 * Math.min(count * minutes, fair));
    }
  });

  test('what carries on a change that has begun is not held back by what its lane asked for', async () => {
    const { clock, gate, enterMany, startTimes } = gateUnderTest({ limit: 20 });
    enterMany(18);
    await clock.advance(0);
    expect(startTimes()).toHaveLength(18);
    const reservation = { [Symbol.dispose]: () => undefined };
    await gate.enter({ lane: 'one', deadlineAt: 1_000, signal: new AbortController().signal, reservation });
  });

  test('a call of a lane does not pass those of it that wait, though the lane was given little of late', async () => {
    const { clock, enter, enterMany, started } = gateUnderTest({ limit: 20 });
    enterMany(60);
    await clock.advance(20_500);
    enter('last');
    await clock.advance(60_000);
    expect(started.at(-1)?.name).toBe('last');
  });

  test('a lane is heavy for what it asked for within about a window, not for long ago', async () => {
    const { clock, enterMany, startTimes } = gateUnderTest({ limit: 20 });
    enterMany(18);
    await clock.advance(20_000);
    enterMany(10);
    await clock.advance(0);
    expect(startTimes()).toHaveLength(28);
  });

  test('who gives up while waiting leaves the place to the next', async () => {
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

  test('who gives up in one lane costs those of the others no time', async () => {
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

  test('who gives up while waiting makes nobody of another lane wait longer', async () => {
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

  test('who has given up before does not get in', async () => {
    const { clock, enter, started, refused } = gateUnderTest();
    enter('late', { signal: AbortSignal.abort() });
    await clock.advance(0);
    expect(started).toEqual([]);
    expect(refused[0]?.error).toSatisfy((error) => isRankdError(error, 'platform_unavailable'));
  });
});

describe('no room before the deadline', () => {
  test('is said at once, with how long until there would be', async () => {
    const { clock, enter, enterMany, refused } = gateUnderTest();
    enterMany(6);
    await clock.advance(1_000);
    enter('hasty', { dueInMs: 9_099 }); // its slot comes free in 9 s, and who wakes then may be a little late
    enter('patient', { dueInMs: 9_100 });
    await clock.advance(0);
    expect(refused).toMatchObject([
      { name: 'hasty', at: 1_000, error: { code: 'platform_busy', retryAfterMs: 9_000 } },
    ]);
  });

  test('counts those ahead in the queue, not only the next slot', async () => {
    const { clock, enter, refused } = gateUnderTest({ limit: 1 });
    for (const name of ['1', '2', '3', '4']) enter(name, { dueInMs: 25_000 });
    await clock.advance(0);
    expect(refused).toMatchObject([{ name: '4', at: 0, error: { retryAfterMs: 30_000 } }]);
  });

  test('is said to those who wait already as soon as the gate closes for longer', async () => {
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

  test('a wait of a day is tested again within ten minutes', async () => {
    const { clock, gate, enter, started } = gateUnderTest();
    gate.close(86_400_000);
    enter('any');
    await clock.advance(600_000);
    expect(started).toHaveLength(1);
  });
});

describe('no time left', () => {
  test('is the reason given if a slot is free, for a call and for a reservation: the budget is not blamed', async () => {
    const { clock, enter, reserve, refused } = gateUnderTest();
    await clock.advance(1_000);
    enter('late', { dueInMs: -1 });
    await clock.advance(0);
    const late = { code: 'platform_unavailable', message: expect.not.stringContaining('budget') };
    expect(refused).toMatchObject([{ name: 'late', at: 1_000, error: late }]);
    expect(() => reserve('late', { dueInMs: -1 })).toThrow(expect.objectContaining(late));
  });

  test('is not the reason given if no slot is free: then the budget is spent, however much time there was', async () => {
    const { clock, enter, enterMany, reserve, refused } = gateUnderTest();
    enterMany(4);
    await clock.advance(1_000);
    enter('late', { dueInMs: -1 });
    await clock.advance(0);
    const busy = { code: 'platform_busy', retryAfterMs: 9_000 };
    expect(refused).toMatchObject([{ name: 'late', error: busy }]);
    expect(() => reserve('late', { dueInMs: -1 })).toThrow(expect.objectContaining(busy));
  });
});

describe('a reserved slot', () => {
  const soon = { dueInMs: 5_000 };

  test('is refused if none is left before the deadline, and the refusal says how long until there is one', async () => {
    const { clock, enterMany, reserve } = gateUnderTest();
    enterMany(2);
    await clock.advance(1_000);
    reserve('third', soon);
    reserve('fourth', soon);
    expect(() => reserve('fifth', soon)).toThrow(
      expect.objectContaining({ code: 'platform_busy', retryAfterMs: 9_000 }),
    );
    reserve('patient', { dueInMs: 9_000 });
  });

  test('is given to a lane that asks for much only where a tenth of the budget is left to the others', () => {
    const { reserve } = gateUnderTest({ limit: 20 });
    for (let number = 0; number < 18; number += 1) reserve(`${number}`, { dueInMs: 4_000 });
    expect(() => reserve('one too many', { dueInMs: 4_000 })).toThrow('rate limit is used up');
    reserve('of another lane', { lane: 'two', dueInMs: 5_000 });
  });

  test('is there for its call, whoever comes before it', async () => {
    const { clock, enter, reserve, started, refused } = gateUnderTest({ limit: 2 });
    const reserved = reserve('reserved', soon);
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

  test('keeps nobody waiting who leaves it in time', async () => {
    const { clock, enter, reserve, startTimes } = gateUnderTest({ limit: 1 });
    const patient = reserve('patient', { dueInMs: 20_000 });
    enter('any');
    patient.enter();
    await clock.advance(10_000);
    expect(startTimes()).toEqual([0, 10_000]);
  });

  test('is not given where it would make one late who waits already', async () => {
    const { clock, enter, reserve, started } = gateUnderTest({ limit: 1 });
    enter('first');
    enter('waits', { dueInMs: 15_000 });
    await clock.advance(0);
    expect(() => reserve('newcomer', { dueInMs: 12_000 })).toThrow(expect.objectContaining({ code: 'platform_busy' }));
    await clock.advance(10_000);
    expect(started).toMatchObject([{ name: 'first' }, { name: 'waits', at: 10_000 }]);
  });

  test('that is released is free at once, for a waiting call and for the next reservation', async () => {
    const { clock, enter, reserve, started } = gateUnderTest({ limit: 1 });
    const unused = reserve('unused', soon);
    expect(() => reserve('too early', soon)).toThrow();
    enter('waits', { dueInMs: 20_000, lane: 'two' });
    reserve('next', { dueInMs: 30_000 }).release();
    await clock.advance(2_000);
    unused.release();
    await clock.advance(0);
    expect(started).toEqual([{ name: 'waits', at: 2_000 }]);
  });

  test('serves one call: a second try with it waits like any other call', async () => {
    const { clock, reserve, started, refused } = gateUnderTest({ limit: 2 });
    const twice = reserve('twice', soon);
    reserve('other', soon);
    twice.enter();
    twice.enter();
    await clock.advance(0);
    expect([started.length, refused.length]).toEqual([1, 1]);
  });

  test('can still be released if its call was aborted before it entered', async () => {
    const { clock, reserve, refused } = gateUnderTest({ limit: 1 });
    const late = reserve('late', { ...soon, signal: AbortSignal.abort() });
    late.enter();
    await clock.advance(0);
    expect(refused).toHaveLength(1);
    late.release();
    expect(() => reserve('next', soon)).not.toThrow();
  });

  test('holds up nobody once its deadline has passed', async () => {
    const { clock, reserve, startTimes } = gateUnderTest({ limit: 1 });
    reserve('never comes', soon);
    await clock.advance(5_001);
    reserve('next', soon).enter();
    await clock.advance(0);
    expect(startTimes()).toEqual([5_001]);
  });

  test('is kept, whatever else reserves, enters, waits and gives up', async () => {
    const step = fc.record({
      kind: fc.constantFrom('reserve', 'reserve', 'plain', 'use', 'use', 'release', 'wait', 'wait'),
      ms: fc.integer({ min: 0, max: 10_000 }),
      pick: fc.nat(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
        const { clock, enter, reserve, started, refused } = gateUnderTest();
        let reserved: Array<ReturnType<typeof reserve> & { dueAt: number }> = [];
        for (const { kind, ms, pick } of steps) {
          reserved = reserved.filter(({ dueAt }) => dueAt >= clock.monotonic());
          const [one] = reserved.splice(pick % Math.max(1, reserved.length), ['use', 'release'].includes(kind) ? 1 : 0);
          if (kind === 'use') one?.enter();
          if (kind === 'release') one?.release();
          if (kind === 'plain') enter('plain', { dueInMs: ms, lane: `${pick % 3}` });
          if (kind === 'wait') await clock.advance(ms / 2);
          if (kind === 'reserve') {
            try {
              reserved.push({ ...reserve('reserved', { dueInMs: ms }), dueAt: clock.monotonic() + ms });
            } catch (error) {
              expect(error).toMatchObject({ code: 'platform_busy' });
            }
          }
        }
        await clock.advance(100_000);
        expect(refused.filter(({ name }) => name === 'reserved')).toEqual([]);
        const times = started.map(({ at }) => at);
        for (const [index, at] of times.entries())
          expect((times[index + 4] ?? Infinity) - at).toBeGreaterThanOrEqual(10_000);
      }),
      { numRuns: 200 },
    );
  });
});
