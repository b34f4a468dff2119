import { expect, test } from 'vitest';
import { benchOptions } from '../../bench/arguments.ts';

const names = ['verify', 'memory'] as const;

test('without arguments the bench runs all of it, thirty rounds', () => {
  expect(benchOptions([], names)).toEqual({ rounds: 30, only: new Set(names), write: false, json: false });
});

test.each([
  [['--seconds', '3'], "Unknown option '--seconds'"],
  [['--rounds', '4'], '--rounds 4: expected a whole number from 5'],
  [['--rounds', 'many'], '--rounds many: expected'],
  [['--only', 'verify,speed'], '--only speed: expected some of verify, memory'],
  [['--only', 'verify', '--write'], '--write keeps whole runs'],
])('%j is refused in one sentence', (line, message) => {
  expect(() => benchOptions(line, names)).toThrow(message);
});
