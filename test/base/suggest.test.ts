import { expect, test } from 'vitest';
import { suggest } from '../../src/base/text.ts';

const names = ['server.port', 'server.host', 'policy.max_rank', 'log.level', 'log'];

test.each([
  ['server.prot', 'server.port'],
  ['server.hosts', 'server.host'],
  ['policy.maxRank', 'policy.max_rank'],
  ['policy.max-rank', 'policy.max_rank'],
  ['LOG.LEVEL', 'log.level'],
  ['logs', 'log'],
])('%s suggests %s', (name, meant) => expect(suggest(name, names)).toBe(meant));

test.each(['webhook', 'x', '', 'server.timeout', 'y'.repeat(100_000)])('%.20s is similar to no name', (name) => {
  expect(suggest(name, names)).toBeUndefined();
});
