import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { RankdError } from '../base/errors.ts';
import { zlib } from '../base/node-modules.ts';
import { atEndOfTurn } from './end-of-turn.ts';

/** In bytes, both before and after decompression. */
const bodyLimit = 65_536;

/**
 * Reads a request's body, whatever its content type, because games send JSON as text/plain or without a type. Calls
 * `then` with the whole body or with an error: immediately if `content-length` exceeds the limit, otherwise at the end
 * of this turn of the event loop or later.
 */
export function readBody(request: IncomingMessage, then: (body: Buffer | RankdError) => void, limit = bodyLimit): void {
  if (Number(request.headers['content-length']) > limit) return void then(bodyTooLarge(limit));
  atEndOfTurn(() => {
    if (request.complete) then(withinLimit(request.read() ?? emptyBody, limit));
    else if (request.destroyed) then(endedEarly());
    else collect(request, then, limit);
  });
}

const emptyBody = Buffer.alloc(0);

function withinLimit(body: Buffer, limit: number): Buffer | RankdError {
  return body.length > limit ? bodyTooLarge(limit) : body;
}

/** Reads a body that arrives over several turns. */
function collect(request: IncomingMessage, then: (body: Buffer | RankdError) => void, limit: number): void {
  const chunks: Buffer[] = [];
  let length = 0;
  let isOver = false;
  const end = (body: Buffer | RankdError) => {
    if (isOver) return;
    isOver = true;
    then(body);
  };
  request
    .on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > limit) end(bodyTooLarge(limit));
      else chunks.push(chunk);
    })
    .on('end', () => end(Buffer.concat(chunks)))
    .on('error', () => end(endedEarly()));
}

/**
 * Decompresses a gzip body. Returns an error instead of throwing it, because a caller with an invalid key must receive
 * the error about the key. Synchronous, so that later requests cannot overtake this one.
 */
export function unpack(body: Buffer, encoding = ''): Buffer | RankdError {
  const name = encoding.trim().toLowerCase();
  if (body.length === 0 || name === '' || name === 'identity') return body;
  if (name !== 'gzip' && name !== 'x-gzip') return unknownEncoding();
  try {
    return zlib().gunzipSync(body, { maxOutputLength: bodyLimit });
  } catch (error) {
    return notUnpacked(error as NodeJS.ErrnoException);
  }
}

function notUnpacked({ code }: NodeJS.ErrnoException): RankdError {
  if (code === 'ERR_BUFFER_TOO_LARGE') return bodyTooLarge();
  return new RankdError('invalid_request', 'The body is marked as gzip, but is not valid gzip.');
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Parses a JSON body, or returns `undefined` if there is none. Throws `invalid_request` or `body_too_large`. */
export function jsonBody({ body }: FastifyRequest): unknown {
  if (body instanceof RankdError) throw body;
  if (!Buffer.isBuffer(body) || body.length === 0) return undefined;
  try {
    return JSON.parse(utf8.decode(body));
  } catch {
    throw new RankdError(
      'invalid_request',
      'The body is not JSON. Send the result of HttpService:JSONEncode; nan and inf are not JSON.',
    );
  }
}

function unknownEncoding(): RankdError {
  return new RankdError(
    'invalid_request',
    'The Content-Encoding of the body is not supported. Send the body uncompressed or as gzip.',
  );
}

function endedEarly(): RankdError {
  return new RankdError('invalid_request', 'The request ended before all of it had arrived.');
}

function bodyTooLarge(limit = bodyLimit): RankdError {
  const size = `The body is larger than ${limit / 1_024} KiB`;
  return new RankdError('body_too_large', `${size}; a request needs well under 1 KiB.`);
}
