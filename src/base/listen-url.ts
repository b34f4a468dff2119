import type { AddressInfo } from 'node:net';
import { membershipOf } from './networks.ts';

/** Where a server listens, e.g. `http://127.0.0.1:7265` or `http://[::]:7265`. */
export function listenUrl({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

/** The same address as programs on this machine reach it: a server may listen on all addresses. */
export function localUrl(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}

/** Whether only programs on this machine reach an address. */
export function isLoopback(address: string): boolean {
  return membershipOf(['127.0.0.0/8', '::1'])(address);
}
