import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../log.ts';
import type { Clock } from '../ports.ts';

/** One line for each request that was answered, or whose caller hung up before. */
export function logAnswer(
  { log, clock }: { log: Logger; clock: Clock },
  request: FastifyRequest,
  { statusCode }: FastifyReply,
): void {
  const level = statusCode >= 500 ? 'warn' : 'info';
  const { method, id, facts, arrivedAt } = request;
  const ms = Math.round(clock.monotonic() - arrivedAt);
  const path = withoutSecrets(pathOf(request.url)).slice(0, longestPath);
  log[level]({ requestId: id, method, path, status: statusCode, ms, ...facts }, 'request');
}

/** The path as routes name it, without the query; also of an address in absolute form. */
export function pathOf(url: string): string {
  const path = url.replace(/^https?:\/\/[^/?]*/i, '').split('?', 1)[0] || '/';
  return path.replaceAll(/\/+/g, '/').replace(/(.)\/$/, '$1');
}

const longestPath = 200;

/** Secrets end up in addresses by mistake; no part of one of rankd's own is long enough to be one. */
function withoutSecrets(path: string): string {
  return path.replaceAll(/([^/]{8})[^/]{8,}/g, '$1…');
}
