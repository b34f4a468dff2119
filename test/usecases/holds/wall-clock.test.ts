import { expect, test } from 'vitest';
import { WallClock } from '../../../src/usecases/holds/wall-clock.ts';

const minute = 60_000;

test('a wall clock is trusted ten steady minutes after a jump forward, and at once if it was set back or slightly corrected', () => {
  const at = { wall: 0, monotonic: 0 };
  const clock = new WallClock({ now: () => at.wall, monotonic: () => at.monotonic });
  const pass = (ms: number, jumpedMs = 0) => {
    at.wall += ms + jumpedMs;
    at.monotonic += ms;
    return clock.check();
  };
  expect(clock.check()).toEqual({ isSteady: true });
  expect(pass(5_000, 4 * minute)).toEqual({ isSteady: true });
  expect(pass(5_000, -24 * 60 * minute)).toEqual({ isSteady: true, jumpedMs: -24 * 60 * minute });
  expect(pass(5_000, 365 * 24 * 60 * minute)).toEqual({ isSteady: false, jumpedMs: 365 * 24 * 60 * minute });
  expect(pass(9 * minute).isSteady).toBe(false);
  expect(pass(minute).isSteady).toBe(true);
});
