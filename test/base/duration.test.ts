import { expect, test } from 'vitest';
import { parseDuration } from '../../src/base/time.ts';

test.each([
  ['0s', 0],
  ['2s', 2000],
  ['5m', 300_000],
  ['24h', 86_400_000],
  ['90d', 7_776_000_000],
])('%s is %i ms', (text, ms) => expect(parseDuration(text)).toBe(ms));

test.each(['', '5', 's', '-1s', '1.5h', '1 s', ' 1s', '1s\n', '1S', '500ms', '1h30m', '1e3s', '9007199254740993s'])(
  '%j is not a duration',
  (text) => expect(parseDuration(text)).toBeUndefined(),
);
