import { type LookupAddress, type LookupAllOptions, lookup } from 'node:dns';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { type Clock, deadlineIn } from '../base/clock.ts';
import { connectionFailure, TimedOut } from '../base/connection-cause.ts';
import { membershipOf } from '../base/net.ts';
import { proxyFor } from '../base/outbound-proxy.ts';
import { controlCharacters } from '../base/text.ts';
import { version } from '../base/version.ts';
import type { Courier, Letter, TargetAnswer } from '../ports/index.ts';
import { callableWith, forbidden, isPublic, literalIn } from './target-rules.ts';

const connectTimeoutMs = 10_000;
const maxAnswerBytes = 2_048;

/** A courier over HTTP. It heeds no proxy, follows no redirect, and keeps no connection open. */
export function httpCourier(clock: Clock, look: Lookup = lookup): Courier {
  return {
    async send(letter, signal) {
      using deadline = deadlineIn(clock, letter.timeoutMs);
      const stop = signal === undefined ? deadline.signal : AbortSignal.any([deadline.signal, signal]);
      try {
        return await exchange(letter, { clock, look }, stop);
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof Forbidden) return { isAnswered: false, error: error.message };
        const seconds = Math.round(letter.timeoutMs / 1000);
        const failure = deadline.signal.aborted ? new TimedOut(`${seconds} s`) : error;
        return { isAnswered: false, error: `${inWords(failure)}${besideProxy(letter)}` };
      }
    },

    async judgeAddress({ address, allowPrivate, proxy }) {
      const url = new URL(address);
      const literal = literalIn(url);
      const mayCall = judgeOf(url, allowPrivate);
      const found = literal === undefined ? await addressesOf(look, url.hostname) : [literal];
      if (found instanceof Error || found.length === 0) {
        const doubt = `${inWords(found)}${besideProxy({ address, proxy })}`;
        return url.protocol === 'http:' && allowPrivate.length === 0
          ? { refusal: `${plainText} (${doubt})` }
          : { doubt };
      }
      const refused = found.find((one) => !mayCall(one));
      return refused === undefined ? {} : { refusal: whyForbidden(refused) };
    },
  };
}

/** Finds the addresses of a name. */
type Lookup = (
  name: string,
  options: LookupAllOptions,
  done: (error: Error | null, found: LookupAddress[]) => void,
) => void;

class Forbidden extends Error {}

/**
 * The hook for names is not called for an address that is written as a number, so both are judged. The connection goes to the very
 * addresses that were judged, whatever the name means a moment later.
 */
async function exchange(
  letter: Letter,
  { clock, look }: { clock: Clock; look: Lookup },
  signal: AbortSignal,
): Promise<TargetAnswer> {
  const url = new URL(letter.address);
  const mayCall = judgeOf(url, letter.allowPrivate);
  const literal = literalIn(url);
  if (literal !== undefined && !mayCall(literal)) throw new Forbidden(whyForbidden(literal));
  const found = Promise.withResolvers<IncomingMessage>();
  const request = (url.protocol === 'http:' ? httpRequest : httpsRequest)(
    url,
    {
      method: letter.method,
      headers: { 'user-agent': `rankd/${version}`, ...letter.headers, ...lengthOf(letter.body) },
      agent: false,
      lookup: judgedLookup(look, mayCall),
      signal,
    },
    found.resolve,
  );
  request.on('error', found.reject);
  giveUpConnecting(request, clock, signal);
  request.end(letter.body);
  try {
    const response = await found.promise;
    const text = await beginningOf(response);
    const header = (name: string) => {
      const value = response.headers[name];
      return Array.isArray(value) ? value[0] : value;
    };
    return { isAnswered: true, status: response.statusCode ?? 0, header, text: without(text, letter) };
  } finally {
    request.destroy();
  }
}

/** What travels in the open may only go where the operator said so. */
function judgeOf({ protocol }: URL, allowPrivate: readonly string[]): (address: string) => boolean {
  return protocol === 'http:' ? membershipOf(allowPrivate) : callableWith(allowPrivate);
}

function addressesOf(look: Lookup, hostname: string): Promise<string[] | Error> {
  return new Promise((resolve) => {
    look(hostname, { all: true }, (error, found) => resolve(error ?? found.map(({ address }) => address)));
  });
}

function whyForbidden(address: string): string {
  return isPublic(address) ? plainText : forbidden(address);
}

const plainText =
  'it is http, which everybody on the way can read; use https, or add its address to webhooks.allow_private';

function lengthOf(body: string | undefined): Record<string, string> {
  return body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
}

/** One address that may not be called refuses all that the name has. */
function judgedLookup(look: Lookup, mayCall: (address: string) => boolean): LookupFunction {
  return (hostname, options, done) => {
    look(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return done(error, '');
      const refused = addresses.find(({ address }) => !mayCall(address));
      if (refused !== undefined) return done(new Forbidden(whyForbidden(refused.address)), '');
      const [first] = addresses;
      if (options.all) return done(null, addresses);
      return done(null, first?.address ?? '', first?.family);
    });
  };
}

/** Somebody who takes no connection is given up earlier than somebody who is slow to answer. */
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

/** The status is there already, so a text that is cut off, or does not end in time, is no failure. */
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
    // what came has to do
  }
  return Buffer.concat(chunks).subarray(0, maxAnswerBytes).toString('utf8');
}

/** What a target said, on one line and without anything that is as good as a password, as it was sent or decoded. */
function without(text: string, { address, secrets = [] }: Letter): string {
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

/** Shorter words would be cut out of what everybody may read. */
const minSecretLength = 8;

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Node's own errors name addresses; these words name none. */
function inWords(error: unknown): string {
  return connectionFailure(error, { at: 'the target' }).words;
}

/** A target that is judged by its address can't be called through a proxy, which looks the name up itself. */
function besideProxy({ address, proxy }: Pick<Letter, 'address' | 'proxy'>): string {
  const variable = proxyFor(address, proxy);
  return variable === undefined ? '' : `; webhooks do not use the proxy in ${variable}`;
}
