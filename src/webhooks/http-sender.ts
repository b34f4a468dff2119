import { lookup as dnsLookup, type LookupAddress, type LookupAllOptions } from 'node:dns';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { type Clock, deadlineIn } from '../base/clock.ts';
import { connectionFailure, TimedOut } from '../base/connection-cause.ts';
import { membershipOf } from '../base/net.ts';
import { proxyFor } from '../base/outbound-proxy.ts';
import { controlCharacters } from '../base/text.ts';
import { version } from '../base/version.ts';
import type { TargetAnswer, WebhookRequest, WebhookSender } from '../ports/index.ts';

const connectTimeoutMs = 10_000;
const maxAnswerBytes = 2_048;

/** Uses no proxy, follows no redirects and reuses no connections. */
export function httpWebhookSender(clock: Clock, lookup: Lookup = dnsLookup): WebhookSender {
  return {
    async send(request, signal) {
      using deadline = deadlineIn(clock, request.timeoutMs);
      const stop = signal === undefined ? deadline.signal : AbortSignal.any([deadline.signal, signal]);
      try {
        return await exchange(request, { clock, lookup }, stop);
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof Forbidden) return { isAnswered: false, error: error.message };
        const seconds = Math.round(request.timeoutMs / 1000);
        const failure = deadline.signal.aborted ? new TimedOut(`${seconds} s`) : error;
        return { isAnswered: false, error: `${inWords(failure)}${proxyNote(request)}` };
      }
    },

    async judgeAddress({ address, allowPrivate, proxy }) {
      const url = new URL(address);
      const literal = literalIn(url);
      const mayCall = judgeOf(url, allowPrivate);
      const found = literal === undefined ? await addressesOf(lookup, url.hostname) : [literal];
      if (found instanceof Error || found.length === 0) {
        const doubt = `${inWords(found)}${proxyNote({ address, proxy })}`;
        return url.protocol === 'http:' && allowPrivate.length === 0
          ? { refusal: `${plainText} (${doubt})` }
          : { doubt };
      }
      const refused = found.find((one) => !mayCall(one));
      return refused === undefined ? {} : { refusal: whyForbidden(refused), refusedAddress: refused };
    },
  };
}

type Lookup = (
  name: string,
  options: LookupAllOptions,
  done: (error: Error | null, found: LookupAddress[]) => void,
) => void;

class Forbidden extends Error {}

/**
 * Connects only to an address that passed the check, even if DNS changes in the meantime. Checks a numeric address
 * separately, because Node.js does not call the lookup hook for it.
 */
async function exchange(
  request: WebhookRequest,
  { clock, lookup }: { clock: Clock; lookup: Lookup },
  signal: AbortSignal,
): Promise<TargetAnswer> {
  const url = new URL(request.address);
  const mayCall = judgeOf(url, request.allowPrivate);
  const literal = literalIn(url);
  if (literal !== undefined && !mayCall(literal)) throw new Forbidden(whyForbidden(literal));
  const found = Promise.withResolvers<IncomingMessage>();
  const outgoing = (url.protocol === 'http:' ? httpRequest : httpsRequest)(
    url,
    {
      method: request.method,
      headers: { 'user-agent': `rankd/${version}`, ...request.headers, ...lengthOf(request.body) },
      agent: false,
      lookup: judgedLookup(lookup, mayCall),
      signal,
    },
    found.resolve,
  );
  outgoing.on('error', found.reject);
  giveUpConnecting(outgoing, clock, signal);
  outgoing.end(request.body);
  try {
    const response = await found.promise;
    const text = await beginningOf(response);
    const header = (name: string) => {
      const value = response.headers[name];
      return Array.isArray(value) ? value[0] : value;
    };
    return { isAnswered: true, status: response.statusCode ?? 0, header, text: without(text, request) };
  } finally {
    outgoing.destroy();
  }
}

/** Allows plain HTTP only to addresses that the operator permits. */
function judgeOf({ protocol }: URL, allowPrivate: readonly string[]): (address: string) => boolean {
  return protocol === 'http:' ? membershipOf(allowPrivate) : callableWith(allowPrivate);
}

function addressesOf(lookup: Lookup, hostname: string): Promise<string[] | Error> {
  return new Promise((resolve) => {
    lookup(hostname, { all: true }, (error, found) => resolve(error ?? found.map(({ address }) => address)));
  });
}

function whyForbidden(address: string): string {
  return isPublic(address) ? plainText : forbidden(address);
}

const plainText =
  'it uses http, so anyone on the network path can read the events; use https, or add its address to webhooks.allow_private';

function lengthOf(body: string | undefined): Record<string, string> {
  return body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
}

function judgedLookup(lookup: Lookup, mayCall: (address: string) => boolean): LookupFunction {
  return (hostname, options, done) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return done(error, '');
      const refused = addresses.find(({ address }) => !mayCall(address));
      if (refused !== undefined) return done(new Forbidden(whyForbidden(refused.address)), '');
      const [first] = addresses;
      if (options.all) return done(null, addresses);
      return done(null, first?.address ?? '', first?.family);
    });
  };
}

/** Destroys the request if it has no connection within `connectTimeoutMs`. The response may take longer. */
function giveUpConnecting(request: ClientRequest, clock: Clock, signal: AbortSignal): void {
  const connected = new AbortController();
  request.on('socket', (socket) => {
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => connected.abort());
  });
  request.once('close', () => connected.abort());
  const waiting = AbortSignal.any([connected.signal, signal]);
  clock.sleep(connectTimeoutMs, waiting).then(
    () => request.destroy(new TimedOut(`no connection within ${connectTimeoutMs / 1000} s`)),
    () => undefined,
  );
}

/** A body that breaks off or does not end in time is not a failure, because the status has already arrived. */
async function beginningOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes >= maxAnswerBytes) break;
    }
  } catch {
    // Use the data received so far.
  }
  return Buffer.concat(chunks).subarray(0, maxAnswerBytes).toString('utf8');
}

/**
 * Masks the address, each part of its path and query, and every secret, encoded or decoded, if they have at least
 * `minSecretLength` characters. Puts the text on one line.
 */
function without(text: string, { address, secrets = [] }: WebhookRequest): string {
  const { pathname, search, searchParams } = new URL(address);
  const inPath = pathname.split('/');
  const parts = [
    ...[address, `${pathname}${search}`, pathname, ...inPath],
    ...[search.slice(1), ...search.slice(1).split(/[&=]/), ...searchParams.values()],
    ...secrets.flatMap((secret) => [secret, secret.replace(/^whsec_/, '')]),
  ];
  const hidden = [...new Set([...parts, ...parts.map(decoded)])]
    .filter((part) => part.length >= minSecretLength)
    .toSorted((one, other) => other.length - one.length)
    .reduce((shown, part) => shown.replaceAll(part, '***'), text);
  return hidden.replaceAll(controlCharacters, ' ').trim();
}

/** Shorter parts also occur in harmless text. */
const minSecretLength = 8;

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Omits the addresses that Node.js error messages contain. */
function inWords(error: unknown): string {
  return connectionFailure(error, { at: 'the target' }).words;
}

/**
 * Webhooks do not use the configured proxy, because the proxy would resolve the name itself and rankd could not check
 * the address.
 */
function proxyNote({ address, proxy }: Pick<WebhookRequest, 'address' | 'proxy'>): string {
  const variable = proxyFor(address, proxy);
  return variable === undefined ? '' : `; webhooks do not use the proxy in ${variable}`;
}

/** True for a public IP address in any notation, except `azureHost`. */
export function isPublic(address: string): boolean {
  if (isIP(address) === 0) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== 'unicast') return false;
  return parsed instanceof ipaddr.IPv6 ? parsed.match(globalUnicast) : parsed.toString() !== azureHost;
}

/**
 * IANA has allocated no unicast addresses outside this block, but private networks such as Yggdrasil use some of them.
 */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Azure's internal services, which every Azure VM can reach. The address is in a public range, so rankd refuses it
 * explicitly.
 */
const azureHost = '168.63.129.16';

export function callableWith(allowPrivate: readonly string[]): (address: string) => boolean {
  const isAllowed = membershipOf(allowPrivate);
  return (address) => isPublic(address) || isAllowed(address);
}

/** Returns a URL's host if it is a numeric address. `URL` has already normalized forms such as `0x7f.1`. */
export function literalIn({ hostname }: URL): string | undefined {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(bare) > 0 ? bare : undefined;
}

export function forbidden(address: string): string {
  return `its address ${address} is not public; if it is yours, add it to webhooks.allow_private`;
}
