import { BlockList, isIP, isIPv6 } from 'node:net';

/**
 * Whether an address is one of these, or in one of these networks. An IPv4 address may be written as IPv6 (`::ffff:…`), an IPv6
 * address may have a zone (`fe80::1%eth0`), and what is no address is in none.
 */
export function membershipOf(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix = isIPv6(network) ? '128' : '32'] = network.split('/');
    list.addSubnet(address, Number(prefix), familyOf(address));
  }
  return (text) => {
    const [address = ''] = text.split('%', 1);
    return isIP(address) > 0 && list.check(address, familyOf(address));
  };
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4';
}

/**
 * The address of a request's sender: the connection's peer, or the last address in `X-Forwarded-For` that is no trusted proxy's. Entries
 * may have a port or brackets. An entry that is no address counts as the proxy's that wrote it.
 */
export function senderOf(
  peer: string | undefined,
  forwardedFor: string | string[] | undefined,
  isTrusted: (address: string) => boolean,
): string {
  let sender = peer ?? ''; // undefined once the peer has hung up
  for (const entry of String(forwardedFor ?? '')
    .split(',')
    .reverse()) {
    const address = isTrusted(sender) ? addressIn(entry.trim()) : undefined;
    if (address === undefined) return sender;
    sender = address;
  }
  return sender;
}

/** e.g. of `203.0.113.7:5001`, `[2001:db8::1]:443` and `2001:db8::1`. */
function addressIn(entry: string): string | undefined {
  const [, inBrackets, withPort] = /^(?:\[([^\]]*)\]|([\d.]+))(?::\d{1,5})?$/.exec(entry) ?? [];
  const address = inBrackets ?? withPort ?? entry;
  return isIP(address) > 0 ? address : undefined;
}
