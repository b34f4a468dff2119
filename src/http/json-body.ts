import { gunzip } from 'node:zlib';
import type { FastifyRequest } from 'fastify';
import { RankdError } from '../errors.ts';

/** The largest body, before and after unpacking, in bytes. */
export const bodyLimit = 65_536;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The JSON of a body, whatever its content type; `undefined` where there is no body. Throws `invalid_request` and
 * `body_too_large`.
 */
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

/**
 * Hands on the bytes of a body that may be packed with gzip; or why there are none, for whoever comes to read them: before that, a
 * caller learns whether the key is accepted.
 */
export function unpack(
  { body, encoding = '' }: { body: Buffer; encoding: string | undefined },
  then: (unpacked: Buffer | RankdError) => void,
): void {
  const name = encoding.trim().toLowerCase();
  if (body.length === 0 || name === '' || name === 'identity') then(body);
  else if (name === 'gzip' || name === 'x-gzip') {
    gunzip(body, { maxOutputLength: bodyLimit }, (error, unpacked) => then(error ? notUnpacked(error) : unpacked));
  } else then(unknownEncoding());
}

function notUnpacked({ code }: NodeJS.ErrnoException): RankdError {
  if (code === 'ERR_BUFFER_TOO_LARGE') return bodyTooLarge();
  return new RankdError('invalid_request', 'The body is marked as gzip, but is not valid gzip.');
}

function unknownEncoding(): RankdError {
  return new RankdError(
    'invalid_request',
    'The body has an encoding that is not understood. Send it plain or as gzip.',
  );
}

export function bodyTooLarge(): RankdError {
  return new RankdError('body_too_large', 'The body is larger than 64 KiB; a rank request needs well under 1 KiB.');
}
