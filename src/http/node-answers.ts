import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { RankdError } from '../base/errors.ts';
import { connectionOf } from './connections.ts';
import { answerTo } from './errors.ts';
import { nextRequestId } from './request-id.ts';

/** Gives the answers that Node would give by itself, without a body, the one JSON shape. */
export function answerForNode(server: Server): void {
  // Who has sent a whole request may end their side and wait for the answer. Node.js does not document it.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => endAfterAnswers(socket, clientError(error)));
  server.on('connect', (_request, socket) => endAfterAnswers(socket, methodNotAllowed('CONNECT', somewhere)));
  server.on('checkExpectation', (request, response: ServerResponse) => server.emit('request', request, response));
}

/**
 * Ends a connection that can't be read any further with an error; but where a request before it has still to be answered, with
 * that answer: a change that is about to succeed must not read as refused.
 */
function endAfterAnswers(socket: Duplex, error: RankdError): void {
  const response = connectionOf(socket).unanswered.findLast(({ req }) => req.complete);
  if (response === undefined) endWith(socket, error);
  else closeAfter(response, socket);
}

/** Also where its head, which would say so, is made already and waits for the answer to an earlier request. */
function closeAfter(response: ServerResponse, socket: Duplex): void {
  if (!response.shouldKeepAlive) return; // is to be closed already
  response.shouldKeepAlive = false;
  response.on('close', () => socket.end());
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

/** What some address here takes: CONNECT names none of them. */
const somewhere = ['GET', 'HEAD', 'POST'];

export function methodNotAllowed(method: string, allowed: readonly string[]): RankdError {
  return new RankdError('method_not_allowed', `${method} is not possible here; send ${allowed.join(' or ')}.`);
}

function endWith(socket: Duplex, error: RankdError): void {
  if (!socket.writable) return void socket.destroy();
  const requestId = nextRequestId();
  const { status, reason, json } = answerTo(error, requestId);
  const head = [
    `HTTP/1.1 ${status} ${reason}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(json)}`,
    `x-request-id: ${requestId}`,
    ...(error.code === 'method_not_allowed' ? [`allow: ${somewhere.join(', ')}`] : []),
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${json}`);
}
