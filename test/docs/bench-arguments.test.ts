import { expect, test } from 'vitest';
import { benchOptions } from '../../bench/arguments.ts';

const names = ['verify', 'memory'] as const;

test('without arguments, the bench runs every part for thirty rounds', () => {
  expect(benchOptions([], names)).toEqual({ rounds: 30, only: new Set(names), write: false, json: false });
});

test('a single part can run alone and store its results', () => {
  expect(benchOptions(['--only', 'verify', '--write'], names)).toMatchObject({
    only: new Set(['verify']),
    write: true,
  });
});

test.each([
  [['--seconds', '3'], "unknown option '--seconds'"],
  [['--rounds', '4'], 'It must be a whole number from 5'],
  [['--rounds', 'many'], 'It must be a whole number'],
  [['--only', 'verify,speed'], 'There is no part speed'],
])('%j is refused in one sentence', (line, message) => {
  expect(() => benchOptions(line, names)).toThrow(message);
});
