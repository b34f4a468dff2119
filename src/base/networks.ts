import { BlockList, isIPv6 } from 'node:net';

/** Whether an address is one of these, or in one of these networks. An IPv4 address may be written as IPv6 (`::ffff:…`). */
export function membershipOf(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix = isIPv6(network) ? '128' : '32'] = network.split('/');
    list.addSubnet(address, Number(prefix), familyOf(address));
  }
  return (address) => list.check(address, familyOf(address));
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4';
}
