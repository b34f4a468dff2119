import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { describeRefusal, type RankdError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { newId } from '../core/api-key.ts';
import type { Clock } from '../ports/index.ts';
import { networkOf } from './throttle.ts';
import { CountedLines, type Rate } from './token-buckets.ts';

/** Random, so that different processes create different ids. */
const idPrefix = newId('req').slice(0, -5);
let count = 36 ** 4; // the smallest number with five base-36 digits

/**
 * Returns a new request id, e.g. `req_8TqLx0v100k3`. It ends in a counter, because generating random characters would
 * cost more than routing the request.
 */
export function nextRequestId(): string {
  count += 1;
  return idPrefix + count.toString(36);
}

export interface Notes {
  /**
   * The time at which the request's headers arrived, on `Clock.monotonic()`. The deadline is measured from this time.
   */
  arrivedAt: number;
  /** The connection's unsent responses, in request order. */
  unanswered: ServerResponse[];
  level: 'debug' | 'info' | 'warn';
  /** Additional fields for the log line. */
  facts: Record<string, unknown>;
  /** The reason for a refusal or failure. */
  error: RankdError | undefined;
  /** An unexpected error inside rankd. */
  failure: unknown;
  /** A problem that the operator should check, although rankd accepted the request. */
  warning: string | undefined;
}

/**
 * The limit on log lines per error code and key, so that thousands of requests a second cannot fill the disk. The audit
 * log also counts the requests refused because of their key or place.
 */
const errorLines: Rate = { perMinute: 20, burst: 200 };
/** The limit per address within `errorLines`, so that one noisy caller does not crowd out the others. */
const errorLinesOfAddress: Rate = { perMinute: 1, burst: 20 };
/** The limit per warning. Only callers with a valid key can cause warnings. */
const warningLines: Rate = { perMinute: 20, burst: 20 };

/** Returns a function that logs an answered request, with separate lines for its warning and its internal failure. */
export function requestLog({
  log,
  clock,
}: {
  log: Logger;
  clock: Pick<Clock, 'monotonic'>;
}): (request: FastifyRequest, reply: FastifyReply) => void {
  // These lines contain no secret fields, and redaction would cost as much as writing the line.
  const lines = log.child({}, { redact: [], level: 'trace' });
  const counted = new CountedLines(clock);
  return (request, { statusCode }) => {
    const { arrivedAt, level: wanted, facts, error, failure, warning } = request.notes;
    const warned = warning && counted.take(warning, warningLines);
    if (warned) log.warn({ requestId: request.id, ...facts, ...warned }, warning);
    const isCounted = statusCode >= 400 && facts['changeId'] === undefined;
    const due = isCounted ? counted.take(`${error?.code} ${facts['keyId']}`, errorLines, ofAddress(request)) : nothing;
    if (due && failure !== undefined) log.error({ err: failure, requestId: request.id }, 'request failed');
    const level = due ? wanted : 'debug';
    if (!log.isLevelEnabled(level)) return; // a child logger does not follow changes to its parent's level
    const { method, id, routeOptions, url } = request; // mostly getters, which run again on each access
    const ms = Math.round(clock.monotonic() - arrivedAt);
    const path = routeOptions.url ?? withoutSecrets(pathOf(url)).slice(0, maxPathLength);
    const why = error && factsOf(error, statusCode);
    const sender = statusCode >= 400 && statusCode < 500 ? { from: request.from } : nothing;
    lines[level](
      { requestId: id, method, path, status: statusCode, ms, ...facts, ...why, ...sender, ...due },
      'request',
    );
  };
}

const nothing = {};

function ofAddress({ from }: FastifyRequest) {
  return { network: networkOf(from), rate: errorLinesOfAddress };
}

/** Returns the log fields for an error, with the reason only for refused callers and server errors. */
function factsOf(error: RankdError, status: number): Record<string, unknown> {
  const { code, details, message, connection, cause } = error;
  if (details !== undefined) return { code, why: describeRefusal(details) };
  if (status < 500) return { code };
  if (connection !== undefined) return { code, cause: connection, why: message };
  return { code, why: cause instanceof Error ? `${message} (${cause.message})` : message };
}

/** Returns the normalized path of a URL, without the query. Accepts a URL in absolute form. */
export function pathOf(url: string): string {
  const path = url.replace(/^https?:\/\/[^/?]*/i, '').split('?', 1)[0] || '/';
  return path.replaceAll(/\/+/g, '/').replace(/(.)\/$/, '$1');
}

const maxPathLength = 200;

/**
 * Masks path segments of 5 or more characters that are neither words nor numbers, because clients put secrets in URLs
 * by mistake. A base64 secret can span several segments.
 */
function withoutSecrets(path: string): string {
  return path.replaceAll(/[^/]{5,}/g, (part) =>
    /^([a-z-]{1,15}|\d{1,20})$/.test(part) ? part : `${part.slice(0, 4)}…`,
  );
}
