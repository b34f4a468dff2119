import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { membershipOf } from '../base/net.ts';

/** True for an address on the public internet, in any notation. */
export function isPublic(address: string): boolean {
  if (isIP(address) === 0) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== 'unicast') return false;
  return parsed instanceof ipaddr.IPv6 ? parsed.match(globalUnicast) : parsed.toString() !== azureHost;
}

/** IANA has allocated no other unicast addresses; private networks such as Yggdrasil use the rest. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

/** The platform's own services on every virtual machine of Azure, which its documentation calls a public address. */
const azureHost = '168.63.129.16';

/** Judges addresses: those that are public, and those that the operator allows. */
export function callableWith(allowPrivate: readonly string[]): (address: string) => boolean {
  const isAllowed = membershipOf(allowPrivate);
  return (address) => isPublic(address) || isAllowed(address);
}

/** The address in the host of a URL, if it is written as a number; `URL` has made `0x7f.1` and the like one of the usual forms. */
export function literalIn({ hostname }: URL): string | undefined {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(bare) > 0 ? bare : undefined;
}

/** Why rankd calls no such address, and what to do about it. */
export function forbidden(address: string): string {
  return `its address ${address} is not public; if it is yours, add it to webhooks.allow_private`;
}
