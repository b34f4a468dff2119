import { expect, test } from 'vitest';
import { callableWith, literalIn } from '../../src/webhooks/http-sender.ts';

const notPublic = [
  ...['127.0.0.1', '127.1', '127.255.255.254', '0x7f.1', '0x7f000001', '2130706433', '017700000001', '①②⑦.0.0.1'],
  ...['0.0.0.0', '0', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '169.254.169.254', '100.64.0.1'],
  ...[
    '192.0.0.1',
    '192.0.2.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
  ],
  ...[
    '[::]',
    '[::1]',
    '[::127.0.0.1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
  ],
  ...['[2001::1]', '[2001:db8::1]', '[fc00::1]', '[fd12:3456::1]', '[fe80::1]', '[fec0::1]', '[ff02::1]'],
  ...['[200::1]', '[1::1]', '[4000::1]', '[fe00::1]', '[100:0:0:1::1]', '168.63.129.16'], // Yggdrasil, unassigned, Azure
  ...['[::ffff:10.0.0.1]', '[::ffff:169.254.169.254]', '[0:0:0:0:0:0:0:1]'],
];

test.each(notPublic)('https://%s is not called', (host) => {
  const literal = literalIn(new URL(`https://${host}/x`));
  expect(literal).toBeDefined();
  expect(callableWith([])(literal ?? '')).toBe(false);
});

test.each(['93.184.215.14', '1.1.1.1', '[2606:4700::1111]', '[::ffff:93.184.215.14]', '172.32.0.1', '100.128.0.1'])(
  'https://%s is called',
  (host) => expect(callableWith([])(literalIn(new URL(`https://${host}`)) ?? '')).toBe(true),
);

test('the operator can allow private networks, and no others are called', () => {
  const isCallable = callableWith(['192.168.1.0/24', '::1']);
  expect(['192.168.1.77', '::1', '::ffff:192.168.1.77', '192.168.2.1', '127.0.0.1'].map(isCallable)).toEqual([
    ...[true, true, true, false, false],
  ]);
});

test('the list contains 47 distinct addresses', () => expect(new Set(notPublic).size).toBe(47));
