import type { FastifyRequest } from 'fastify';
import { RankdError } from '../base/errors.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The JSON of a body; `undefined` where there is no body. Throws `invalid_request` and `body_too_large`. */
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
