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
