import { expect, test } from 'vitest';
import { RankdError } from '../../../src/base/errors.ts';
import { Reach } from '../../../src/platforms/upstream/reach.ts';

const users = 'https://users.roblox.com';
const error = new RankdError('platform_unavailable', 'refused');
const minuteMs = 60_000;

function reachAt(startMs: number) {
  const clock = { now: startMs };
  return { clock, reach: new Reach(() => clock.now) };
}

test('a host that never responded counts as unreached after one failure, and any other host after two', () => {
  const { reach } = reachAt(0);
  reach.failed(users, error);
  expect(reach.state()).toMatchObject({ unreached: [{ host: 'users.roblox.com', since: 0, error }], reached: [] });
  reach.answered(users, new Headers());
  expect(reach.state()).toMatchObject({ unreached: [], reached: ['users.roblox.com'] });
  reach.failed(users, error);
  expect(reach.state().unreached).toEqual([]);
  reach.failed(users, error);
  expect(reach.state()).toMatchObject({ unreached: [{ host: 'users.roblox.com' }], reached: [] });
});

test('a host that is not called again counts as unreached for only ten minutes, and is not reported as reached', () => {
  const { clock, reach } = reachAt(0);
  reach.failed(users, error);
  clock.now = 9 * minuteMs;
  reach.failed(users, error);
  clock.now = 18 * minuteMs;
  expect(reach.state().unreached).toEqual([{ host: 'users.roblox.com', since: 0, error }]);
  clock.now = 20 * minuteMs;
  expect(reach.state()).toMatchObject({ unreached: [], reached: [] });
  reach.failed(users, error);
  expect(reach.state().unreached).toEqual([{ host: 'users.roblox.com', since: 20 * minuteMs, error }]);
});
