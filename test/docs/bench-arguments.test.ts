import { expect, test } from 'vitest';
import { benchOptions } from '../../bench/arguments.ts';

const names = ['verify', 'memory'] as const;

test('without arguments the bench runs all of it, five rounds', () => {
  expect(benchOptions([], names)).toEqual({ rounds: 5, seconds: 3, only: new Set(names), write: false, json: false });
});

test.each([
  [['--rounds', '4'], '--rounds 4: expected a whole number from 5'],
  [['--rounds', 'many'], '--rounds many: expected'],
  [['--seconds', '0'], '--seconds 0: expected a number above 0'],
  [['--only', 'verify,speed'], '--only speed: expected some of verify, memory'],
  [['--only', 'verify', '--write'], '--write keeps whole runs'],
  [['--bogus'], "Unknown option '--bogus'"],
])('%j is refused in one sentence', (line, message) => {
  expect(() => benchOptions(line, names)).toThrow(message);
});
