import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../log.ts';
import type { Clock } from '../ports.ts';

/** Writes one line for each request that was answered, or whose caller hung up before. */
export function requestLog({
  log,
  clock,
}: {
  log: Logger;
  clock: Pick<Clock, 'monotonic'>;
}): (request: FastifyRequest, reply: FastifyReply) => void {
  // No field of these lines is named after a secret, and looking for such fields costs as much as the line.
  const lines = log.child({}, { redact: [], level: 'trace' });
  return (request, { statusCode }) => {
    const { method, id, facts, arrivedAt, routeOptions, logLevel: level } = request;
    if (!log.isLevelEnabled(level)) return; // of the parent: a child does not hear of a new level
    const ms = Math.round(clock.monotonic() - arrivedAt);
    const path = routeOptions.url ?? withoutSecrets(pathOf(request.url)).slice(0, longestPath);
    lines[level]({ requestId: id, method, path, status: statusCode, ms, ...facts }, 'request');
  };
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
