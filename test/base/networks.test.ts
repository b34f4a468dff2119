import { expect, test } from 'vitest';
import { listenError, membershipOf } from '../../src/base/net.ts';

test.each([
  ['127.0.0.9', true],
  ['::ffff:127.0.0.9', true],
  ['128.0.0.1', false],
  ['192.0.2.7', true],
  ['192.0.2.8', false],
  ['::1', true],
  ['::2', false],
  ['fe80::1%eth0', true],
  ['fe80::1%any name', true],
  ['2001:db8::1', false],
  ['', false],
  ['no address', false],
])('%s is in the list of addresses and networks: %s', (address, isAmong) => {
  expect(membershipOf(['127.0.0.0/8', '192.0.2.7', '::1', 'fe80::/10'])(address)).toBe(isAmong);
});

test('a network can contain every address', () => {
  expect(membershipOf(['0.0.0.0/0'])('203.0.113.7')).toBe(true);
  expect(membershipOf([])('203.0.113.7')).toBe(false);
});

test('the advice to choose a higher port is given only for a port below 1024 that this user may not use', () => {
  const hintFor = (port: number) =>
    listenError(Object.assign(new Error(), { code: 'EACCES' }), {
      host: '127.0.0.1',
      port,
      hint: '--port',
      section: 'server',
    });
  expect(hintFor(80)).toMatchObject({ hint: 'choose port 1024 or higher: --port' });
  expect(hintFor(50000)).toMatchObject({ hint: 'choose a different port: --port' });
});
