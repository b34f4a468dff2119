import { expect, test } from 'vitest';
import { published, summaryOf } from '../../bench/publish.ts';

test('bench/README.md quotes the benchmarks as the bench found them', () => {
  const { results, summary } = published();
  expect(summary).toBe(summaryOf(results));
});
