import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { RankdError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import type { Clock } from '../ports/index.ts';
import type { ForeignProtocols } from '../usecases/daemon-context.ts';
import { closeAfter, connectionOf, endConnection } from './connections.ts';
import { answerTo } from './errors.ts';
import { nextRequestId } from './request-log.ts';
import { CountedLines } from './token-buckets.ts';

/** The protocols that a misconfigured proxy might use on a plain HTTP/1.1 port, and the fix for each. */
const foreignProtocols = {
  TLS: 'configure the caller, such as a reverse proxy or a tunnel, to use http:// for this port; games must call the proxy or the tunnel with https://',
  'HTTP/2': 'configure the proxy to use HTTP/1.1 for rankd',
  'the PROXY protocol': 'turn it off in the proxy, and use X-Forwarded-For instead',
} as const satisfies Record<keyof ForeignProtocols, string>;

const onceAMinute = { perMinute: 1, burst: 1 };

/**
 * Answers invalid requests with rankd's JSON errors and headers, in place of Node.js's own responses, which have no
 * body.
 */
export function answerForNode(server: Server, { log, clock, section, headers, foreign }: NodeAnswers): void {
  // This undocumented option lets callers close their side after a complete request and wait for the response.
  Object.assign(server, { httpAllowHalfOpen: true });
  const counted = new CountedLines(clock);
  const report = (protocol: keyof ForeignProtocols, from: string | undefined) => {
    if (foreign !== undefined) foreign[protocol] += 1;
    const due = counted.take(protocol, onceAMinute);
    const sentence = `a caller used ${protocol} on a port for plain HTTP/1.1: ${foreignProtocols[protocol]}`;
    if (due !== undefined) log.warn({ from, listener: section, ...due }, sentence);
  };
  server.on('clientError', (error: ParseError, socket) => {
    const protocol = connectionOf(socket).latestAt === undefined ? protocolOf(error) : undefined;
    if (protocol !== undefined) report(protocol, (socket as Socket).remoteAddress);
    endAfterAnswers(socket, clientError(error, protocol), headers?.());
  });
  server.on('connect', (_request, socket) =>
    endAfterAnswers(socket, methodNotAllowed('CONNECT', methodsOfAnyPath), headers?.()),
  );
  server.on('checkExpectation', (request, response: ServerResponse) => server.emit('request', request, response));
}

interface NodeAnswers {
  log: Logger;
  clock: Pick<Clock, 'monotonic'>;
  section: string;
  headers?: () => Readonly<Record<string, string>>;
  foreign?: ForeignProtocols;
}

interface ParseError extends NodeJS.ErrnoException {
  rawPacket?: Buffer;
}

/**
 * Detects the protocol from a connection's first bytes: a TLS handshake record, the HTTP/2 preface, or a header of the
 * PROXY protocol, version 1 or 2. Node.js's own parser detects the HTTP/2 preface, even if it is split across packets.
 */
function protocolOf({ code, rawPacket = Buffer.alloc(0) }: ParseError): keyof ForeignProtocols | undefined {
  if (code === 'HPE_PAUSED_H2_UPGRADE') return 'HTTP/2';
  if (rawPacket[0] === 0x16 && (rawPacket[1] ?? 3) === 3) return 'TLS';
  const text = rawPacket.toString('latin1', 0, 16);
  const isProxied = text.startsWith('PROXY ') || text.startsWith('\r\n\r\n\0\r\nQUIT\n');
  return isProxied ? 'the PROXY protocol' : undefined;
}

/**
 * Sends an error for invalid input and closes the connection. If complete requests are still unanswered, sends no error
 * and closes the connection after their responses, because a change that is about to succeed must not look refused.
 */
function endAfterAnswers(socket: Duplex, error: RankdError, headers?: Readonly<Record<string, string>>): void {
  const { unanswered, isClosing } = connectionOf(socket);
  if (isClosing) return; // Node.js closes the connection after the response with `connection: close`
  const response = unanswered.findLast(({ req }) => req.complete);
  if (response === undefined) endWithError(socket, error, headers);
  else closeAfter(response, socket);
}

function clientError({ code }: NodeJS.ErrnoException, protocol: keyof ForeignProtocols | undefined): RankdError {
  if (protocol !== undefined)
    return new RankdError('invalid_request', `This port accepts only plain HTTP/1.1, not ${protocol}.`);
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new RankdError('headers_too_large', 'The request headers are larger than 16 KiB.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new RankdError('request_timeout', 'The request took too long to arrive; send it again.');
    default:
      return new RankdError('invalid_request', 'This is not a complete HTTP request.');
  }
}

/** The methods that at least one path accepts, for CONNECT and `*`, which name no path. */
export const methodsOfAnyPath = ['GET', 'HEAD', 'POST'];

export function methodNotAllowed(method: string, allowed: readonly string[]): RankdError {
  return new RankdError('method_not_allowed', `${method} is not allowed here; send ${allowed.join(' or ')}.`);
}

/** Sends an error on a connection that has no response object, and closes the connection. */
export function endWithError(socket: Duplex, error: RankdError, headers: Readonly<Record<string, string>> = {}): void {
  const requestId = nextRequestId();
  const { status, reason, json } = answerTo(error, requestId);
  const head = [
    `HTTP/1.1 ${status} ${reason}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(json)}`,
    `x-request-id: ${requestId}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(error.code === 'method_not_allowed' ? [`allow: ${methodsOfAnyPath.join(', ')}`] : []),
    'connection: close',
  ];
  endConnection(socket, `${head.join('\r\n')}\r\n\r\n${json}`);
}
