import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RankdError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { describeRefusal } from '../base/refusal-details.ts';
import type { Clock } from '../ports/index.ts';
import { type Rate, TokenBuckets } from './token-buckets.ts';

/** What is noted about a request while it is answered. Its line in the log is made from this. */
export interface Notes {
  /** When its headers had arrived, on `Clock.monotonic()`. Its deadline counts from then. */
  arrivedAt: number;
  /** Of its connection: `connections.ts`. */
  unanswered: ServerResponse[];
  /** The level of its line. */
  level: 'debug' | 'info' | 'warn';
  /** What the line says besides status and time. */
  facts: Record<string, unknown>;
  /** Why it was refused or failed. */
  error: RankdError | undefined;
  /** What the operator should look at although the request was let in. */
  warning: string | undefined;
}

/** For each code and each warning. The audit has the sums: a caller who tries keys or places must not fill the disk with log lines. */
const maxLines: Rate = { perMinute: 20, burst: 20 };
/** There are fewer codes and warnings. */
const maxKinds = 100;

/** Writes one line for each request that is answered, and one for its warning, even if the caller has hung up. */
export function requestLog({
  log,
  clock,
}: {
  log: Logger;
  clock: Pick<Clock, 'monotonic'>;
}): (request: FastifyRequest, reply: FastifyReply) => void {
  // No field of these lines is named after a secret, and to look for such fields costs as much as the line.
  const lines = log.child({}, { redact: [], level: 'trace' });
  const buckets = new TokenBuckets(clock, maxKinds);
  const isDue = (kind: string) => buckets.take(kind, maxLines).isAllowed;
  return (request, { statusCode }) => {
    const { arrivedAt, level: wanted, facts, error, warning } = request.notes;
    if (warning !== undefined && isDue(warning)) log.warn({ requestId: request.id, ...facts }, warning);
    const isRefusal = statusCode >= 400 && statusCode < 500 && facts['changeId'] === undefined;
    const isLogged = !isRefusal || isDue(String(error?.code));
    const level = isLogged ? wanted : 'debug';
    if (!log.isLevelEnabled(level)) return; // asks the parent: a child does not notice a new level
    const { method, id, routeOptions, url } = request; // getters: Fastify computes these
    const ms = Math.round(clock.monotonic() - arrivedAt);
    const path = routeOptions.url ?? withoutSecrets(pathOf(url)).slice(0, maxPathLength);
    const why = error && factsOf(error, statusCode);
    lines[level]({ requestId: id, method, path, status: statusCode, ms, ...facts, ...why }, 'request');
  };
}

/** What the log says of an error: more than its caller is told. */
function factsOf({ code, details, message, cause }: RankdError, status: number): Record<string, unknown> {
  if (details !== undefined) return { code, why: describeRefusal(details) };
  if (status < 500) return { code };
  return { code, why: cause instanceof Error ? `${message} (${cause.message})` : message };
}

/** The path without the query, as routes name it. The address may be in absolute form. */
export function pathOf(url: string): string {
  const path = url.replace(/^https?:\/\/[^/?]*/i, '').split('?', 1)[0] || '/';
  return path.replaceAll(/\/+/g, '/').replace(/(.)\/$/, '$1');
}

const maxPathLength = 200;

/** Secrets end up in addresses by mistake. No part of rankd's own addresses is long enough to be one. */
function withoutSecrets(path: string): string {
  return path.replaceAll(/([^/]{8})[^/]{8,}/g, '$1…');
}
