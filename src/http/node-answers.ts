import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { RankdError } from '../base/errors.ts';
import { closeAfter, connectionOf, endConnection } from './connections.ts';
import { answerTo } from './errors.ts';
import { nextRequestId } from './request-id.ts';

/** Node answers some requests by itself, without a body. This gives those answers the JSON shape of all others. */
export function answerForNode(server: Server): void {
  // A caller who has sent a whole request may end their side and wait for the answer. Node.js does not document this option.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => endAfterAnswers(socket, clientError(error)));
  server.on('connect', (_request, socket) => endAfterAnswers(socket, methodNotAllowed('CONNECT', acceptedSomewhere)));
  server.on('checkExpectation', (request, response: ServerResponse) => server.emit('request', request, response));
}

/**
 * Ends a connection that can't be read any further, with an error. If an earlier request on it still waits for its answer, the
 * connection ends with that answer instead: a change that is about to succeed must not look refused.
 */
function endAfterAnswers(socket: Duplex, error: RankdError): void {
  const { unanswered, isClosing } = connectionOf(socket);
  if (isClosing) return; // Node.js ends the connection with the answer that says so
  const response = unanswered.findLast(({ req }) => req.complete);
  if (response === undefined) endWithError(socket, error);
  else closeAfter(response, socket);
}

function clientError({ code }: NodeJS.ErrnoException): RankdError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new RankdError('headers_too_large', 'The request headers are larger than 16 KiB.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new RankdError('request_timeout', 'The request took too long to arrive; send it again.');
    default:
      return new RankdError('invalid_request', 'This is not a complete HTTP request.');
  }
}

/** What at least one address here accepts. CONNECT names no address. */
const acceptedSomewhere = ['GET', 'HEAD', 'POST'];

export function methodNotAllowed(method: string, allowed: readonly string[]): RankdError {
  return new RankdError('method_not_allowed', `${method} is not allowed here; send ${allowed.join(' or ')}.`);
}

/** Answers a connection that has no response for it, and ends it. */
export function endWithError(socket: Duplex, error: RankdError): void {
  const requestId = nextRequestId();
  const { status, reason, json } = answerTo(error, requestId);
  const head = [
    `HTTP/1.1 ${status} ${reason}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(json)}`,
    `x-request-id: ${requestId}`,
    ...(error.code === 'method_not_allowed' ? [`allow: ${acceptedSomewhere.join(', ')}`] : []),
    'connection: close',
  ];
  endConnection(socket, `${head.join('\r\n')}\r\n\r\n${json}`);
}
