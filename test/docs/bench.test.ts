import { expect, test } from 'vitest';
import type { Finding } from '../../bench/findings.ts';
import { published, summaryOf, withPart } from '../../bench/publish.ts';

test('bench/README.md quotes the stored results of the bench', () => {
  const { results, summary } = published();
  expect(summary).toBe(summaryOf(results));
});

const at = (median: number): Finding[] => [
  { what: 'a command', against: '', figure: 'time', unit: 'ms', median, lowerQuartile: median, upperQuartile: median },
];
const conditions = { machine: 'this one' };

test('a part that is measured again replaces its stored results, and the others stay, in the order of the bench', () => {
  const stored = { conditions, parts: { memory: at(1), verify: at(2), gone: at(3) } };
  const found = { conditions, parts: { verify: at(4), search: at(5) } };
  const { parts } = withPart(stored, found, ['verify', 'memory', 'search', 'scale']);
  expect(Object.entries(parts)).toEqual([
    ['verify', at(4)],
    ['memory', at(1)],
    ['search', at(5)],
  ]);
});

test('results of a different machine are not stored together with new ones', () => {
  const stored = { conditions: { machine: 'another one' }, parts: { verify: at(2) } };
  const found = { conditions, parts: { memory: at(1) } };
  expect(withPart(stored, found, ['verify', 'memory'])).toEqual(found);
});
