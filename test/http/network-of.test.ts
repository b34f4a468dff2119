import { expect, test } from 'vitest';
import { networkOf } from '../../src/http/throttle.ts';

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::', '2001:db8:1:2::/64'],
  ['2001:0DB8:0001:0002:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001::1:2:3:4:5', '2001:0:0:1::/64'],
  ['2001::1:2:3:4:f', '2001:0:0:1::/64'],
  ['::1:2:3:4:203.0.113.7', '0:0:1:2::/64'],
  ['::1', '0:0:0:0::/64'],
  ['::', '0:0:0:0::/64'],
  ['64:ff9b::203.0.113.7', '64:ff9b:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['no address', 'no address'],
  ['010.0.0.1', '010.0.0.1'],
  ['7', '7'],
  ['fe80::1%eth0.2', 'fe80:0:0:0::/64'],
])('%s belongs to the network %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});

test('a caller that has disconnected has no network', () => {
  expect(networkOf(undefined)).toBe('');
});

test('text that is not an address is truncated', () => {
  expect(networkOf('x'.repeat(10_000)).length).toBeLessThan(100);
});
