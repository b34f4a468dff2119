import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { membershipOf } from '../base/networks.ts';

/** True for an address that is on the public internet, however it is written. */
export function isPublic(address: string): boolean {
  if (isIP(address) === 0) return false;
  const parsed = ipaddr.process(address);
  // `::127.0.0.1` (RFC 4291, 2.5.5.1) is long out of use, and the library takes it for an ordinary address.
  const isOldForm = parsed instanceof ipaddr.IPv6 && parsed.parts.slice(0, 6).every((part) => part === 0);
  return parsed.range() === 'unicast' && !isOldForm;
}

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
