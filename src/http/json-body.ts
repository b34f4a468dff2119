import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { FastifyRequest } from 'fastify';
import { RankdError } from '../errors.ts';

/** The largest body, before and after unpacking, in bytes. */
export const bodyLimit = 65_536;

const unpack = promisify(gunzip);
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The JSON of a body, plain or gzip, whatever its content type; `undefined` where there is no body. */
export async function jsonBody({ body, headers }: FastifyRequest): Promise<unknown> {
  if (!Buffer.isBuffer(body) || body.length === 0) return undefined;
  const encoding = headers['content-encoding'];
  const bytes = encoding === undefined ? body : await plainBytes(body, encoding);
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw new RankdError(
      'invalid_request',
      'The body is not JSON. Send the result of HttpService:JSONEncode; nan and inf are not JSON.',
    );
  }
}

async function plainBytes(body: Buffer, encoding: string): Promise<Buffer> {
  switch (encoding.trim().toLowerCase()) {
    case 'identity':
    case '':
      return body;
    case 'gzip':
    case 'x-gzip':
      return unpack(body, { maxOutputLength: bodyLimit }).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ERR_BUFFER_TOO_LARGE') throw bodyTooLarge();
        throw new RankdError('invalid_request', 'The body is marked as gzip, but is not valid gzip.');
      });
    default:
      throw new RankdError(
        'invalid_request',
        'The body has an encoding that is not understood. Send it plain or as gzip.',
      );
  }
}

export function bodyTooLarge(): RankdError {
  return new RankdError('body_too_large', 'The body is larger than 64 KiB; a rank request needs well under 1 KiB.');
}
