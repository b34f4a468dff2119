import { isIPv4, isIPv6 } from 'node:net';

/**
 * What one caller can be told apart by: an IPv4 address, or the /64 network of an IPv6 one, of which a caller has them all. Who
 * has hung up already has no address any more.
 */
export function networkOf(address: string | undefined = ''): string {
  if (isIPv4(address)) return address;
  const [plain = ''] = address.split('%', 1);
  const [, mapped = ''] = /^::ffff:([\d.]+)$/i.exec(plain) ?? [];
  if (isIPv4(mapped)) return mapped;
  return isIPv6(plain) ? `${groupsOf(plain).slice(0, 4).join(':')}::/64` : plain.slice(0, maxNameLength);
}

/** What a proxy put into X-Forwarded-For may be anything. */
const maxNameLength = 45;

/** The eight groups of an IPv6 address, without leading zeros. */
function groupsOf(address: string): string[] {
  const [head = '', tail] = address
    .toLowerCase()
    .replace(/:\d+\.[\d.]+$/, ':0:0')
    .split('::', 2);
  const groups = (text: string) => text.split(':').filter((group) => group !== '');
  const [before, after] = [groups(head), groups(tail ?? '')];
  const between = tail === undefined ? [] : Array.from({ length: 8 - before.length - after.length }, () => '0');
  return [...before, ...between, ...after].map((group) => group.replace(/^0+(?=.)/, ''));
}
