import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RankdError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { describeRefusal } from '../base/refusal-details.ts';
import type { Clock } from '../ports/index.ts';
import { CountedLines } from './counted-lines.ts';
import type { Rate } from './token-buckets.ts';

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
  /** What went wrong inside of rankd. */
  failure: unknown;
  /** What the operator should look at although the request was let in. */
  warning: string | undefined;
}

/**
 * Of each code, for callers without a key and for each key. The audit has the sums of refused callers: whoever sends thousands of
 * requests a second must not fill the disk with log lines.
 */
const errorLines: Rate = { perMinute: 1, burst: 20 };
/** Of each warning. Only callers with a good key cause these. */
const warningLines: Rate = { perMinute: 20, burst: 20 };

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
  const counted = new CountedLines(clock);
  return (request, { statusCode }) => {
    const { arrivedAt, level: wanted, facts, error, failure, warning } = request.notes;
    const warned = warning && counted.take(warning, warningLines);
    if (warned) log.warn({ requestId: request.id, ...facts, ...warned }, warning);
    const isCounted = statusCode >= 400 && facts['changeId'] === undefined;
    const due = isCounted ? counted.take(`${error?.code} ${facts['keyId']}`, errorLines) : nothing;
    if (due && failure !== undefined) log.error({ err: failure, requestId: request.id }, 'request failed');
    const level = due ? wanted : 'debug';
    if (!log.isLevelEnabled(level)) return; // asks the parent: a child does not notice a new level
    const { method, id, routeOptions, url } = request; // getters: Fastify computes these
    const ms = Math.round(clock.monotonic() - arrivedAt);
    const path = routeOptions.url ?? withoutSecrets(pathOf(url)).slice(0, maxPathLength);
    const why = error && factsOf(error, statusCode);
    const whence = statusCode >= 400 && statusCode < 500 ? { from: request.from } : nothing;
    lines[level](
      { requestId: id, method, path, status: statusCode, ms, ...facts, ...why, ...whence, ...due },
      'request',
    );
  };
}

const nothing = {};

/** What the log says of an error: more than its caller is told. */
function factsOf(error: RankdError, status: number): Record<string, unknown> {
  const { code, details, message, connection, cause } = error;
  if (details !== undefined) return { code, why: describeRefusal(details) };
  if (status < 500) return { code };
  if (connection !== undefined) return { code, cause: connection, why: message };
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
