import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatDuration, parseDuration } from '../../src/config/duration.ts';

test.each([
  ['0s', 0],
  ['2s', 2000],
  ['5m', 300_000],
  ['24h', 86_400_000],
  ['90d', 7_776_000_000],
])('%s is %i ms', (text, ms) => expect(parseDuration(text)).toBe(ms));

test.each(['', '5', 's', '-1s', '1.5h', '1 s', ' 1s', '1s\n', '1S', '500ms', '1h30m', '1e3s', '9007199254740993s'])(
  '%j is no duration',
  (text) => expect(parseDuration(text)).toBeUndefined(),
);

test('what is printed is read back as the same', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1_000_000_000 }), (seconds) => {
      expect(parseDuration(formatDuration(seconds * 1000))).toBe(seconds * 1000);
    }),
  );
});

test.each([
  [0, '0s'],
  [1, '1s'],
  [59_001, '1m'],
  [90_000, '90s'],
  [5_400_000, '90m'],
  [86_400_000, '1d'],
])('%i ms is printed with the largest unit that fits: %s', (ms, text) => expect(formatDuration(ms)).toBe(text));
