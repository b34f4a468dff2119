import type { FastifyReply, FastifyRequest } from 'fastify';
import { RankdError } from '../base/errors.ts';
import type { DaemonContext } from '../usecases/daemon-context.ts';
import { answerTo } from './errors.ts';

/** Answers a request with what a caller is told of an error; the log is told the rest. */
export function sendError(
  { log }: Pick<DaemonContext, 'log'>,
  { error, request, reply }: { error: unknown; request: FastifyRequest; reply: FastifyReply },
): FastifyReply {
  const known = fromFramework(error);
  const { status, retryAfter, json } = answerTo(known, request.id);
  request.notes.level = status >= 500 ? 'warn' : 'info';
  if (status === 500) log.error({ err: error, requestId: request.id }, 'request failed');
  if (known instanceof RankdError) request.notes.error = known;
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter);
  return reply.code(status).type('application/json; charset=utf-8').send(json);
}

/** Fastify's own refusals, in rankd's words. */
function fromFramework(error: unknown): unknown {
  const { statusCode = 500 } = Object(error) as { statusCode?: number };
  if (statusCode < 500)
    return new RankdError('invalid_request', 'The request could not be read: check its address.', {
      cause: error,
    });
  return error;
}
