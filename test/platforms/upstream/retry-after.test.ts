import { describe, expect, test } from 'vitest';
import { parseRateLimit, parseRetryAfter } from '../../../src/platforms/upstream/answer.ts';

const now = Date.UTC(2026, 0, 1, 12, 0, 0);

describe('retry-after', () => {
  test.each([
    ['0', 0],
    ['7', 7_000],
    [' 120 ', 120_000],
    ['1.5', 1_500],
  ])('%j is read as seconds', (value, ms) => {
    expect(parseRetryAfter(value, now)).toBe(ms);
  });

  test.each(['Thu, 01 Jan 2026 12:00:30 GMT', 'Thursday, 01-Jan-26 12:00:30 GMT', 'Thu Jan  1 12:00:30 2026'])(
    'the date %j is read as the time until then',
    (value) => {
      expect(parseRetryAfter(value, now)).toBe(30_000);
    },
  );

  test.each(['86400', '9'.repeat(400), 'Fri, 02 Jan 2026 12:00:00 GMT'])('%j is capped at ten minutes', (value) => {
    expect(parseRetryAfter(value, now)).toBe(600_000);
  });

  test('a date in the past means no wait', () => {
    expect(parseRetryAfter('Thu, 01 Jan 2026 11:00:00 GMT', now)).toBe(0);
  });

  test.each([null, '', 'soon', '-5', '5s', 'NaN', '1e3', 'Mon, 99 Foo 2026', '2026-01-01T12:00:30Z'])(
    '%j is ignored',
    (value) => {
      expect(parseRetryAfter(value, now)).toBeUndefined();
    },
  );
});

describe('x-ratelimit headers', () => {
  const read = (limit: string, remaining = '', reset = '') =>
    parseRateLimit(
      new Headers({ 'x-ratelimit-limit': limit, 'x-ratelimit-remaining': remaining, 'x-ratelimit-reset': reset }),
    );

  test('the documented form gives limit, window, remaining and reset', () => {
    expect(read('1000, 1000;w=60, 1000;w=60', '998', '20')).toEqual({
      limit: 1000,
      windowMs: 60_000,
      remaining: 998,
      resetMs: 20_000,
    });
  });

  test('the window is that of the current limit', () => {
    expect(read('300, 10;w=1, 300;w=90')).toMatchObject({ limit: 300, windowMs: 90_000 });
  });

  test('a limit alone has no window', () => {
    expect(read('300')).toMatchObject({ limit: 300, windowMs: undefined });
  });

  test('a missing value, a zero or text is ignored', () => {
    const nothing = { limit: undefined, windowMs: undefined, remaining: undefined, resetMs: undefined };
    expect(parseRateLimit(new Headers())).toEqual(nothing);
    expect(read('0, 0;w=0', 'many', '-3')).toEqual(nothing);
  });

  test('an implausible limit or window is capped', () => {
    expect(read('999999999999999, 999999999999999;w=999999999', '0', '1')).toMatchObject({
      limit: 10_000,
      windowMs: 600_000,
    });
  });

  test('zero remaining calls and zero seconds until the reset are valid', () => {
    expect(read('300, 300;w=60', '0', '0')).toMatchObject({ remaining: 0, resetMs: 0 });
  });
});
