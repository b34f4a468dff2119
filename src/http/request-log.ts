import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { describeRefusal, type RankdError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { newId } from '../core/api-key.ts';
import type { Clock } from '../ports/index.ts';
import { networkOf } from './throttle.ts';
import { CountedLines, type Rate } from './token-buckets.ts';

/** Random for each process, so that two runs do not use the same ids. */
const idPrefix = newId('req').slice(0, -5);
let count = 36 ** 4; // five digits from the start

/** The next request's id, e.g. `req_8TqLx0v100k3`. It ends in a counter: random characters would cost more than the routing. */
export function nextRequestId(): string {
  count += 1;
  return idPrefix + count.toString(36);
}

/** Facts about a request, for its log line. */
export interface Notes {
  /** The arrival of its headers, on `Clock.monotonic()`. The deadline counts from this time. */
  arrivedAt: number;
  /** The unanswered requests of its connection: see `connections.ts`. */
  unanswered: ServerResponse[];
  level: 'debug' | 'info' | 'warn';
  /** The fields of the line, except status and time. */
  facts: Record<string, unknown>;
  /** The reason for a refusal or failure. */
  error: RankdError | undefined;
  /** An unexpected error inside rankd. */
  failure: unknown;
  /** A problem for the operator to check, although rankd accepts the request. */
  warning: string | undefined;
}

/**
 * The limit per code, for callers without a key and for each key. Thousands of requests a second must not fill the disk
 * with log lines; the audit has the totals of refused callers.
 */
const errorLines: Rate = { perMinute: 20, burst: 200 };
/** The limit per address in each of these. One noisy caller must not hide where the others are. */
const errorLinesOfAddress: Rate = { perMinute: 1, burst: 20 };
/** The limit per warning. Only callers with a valid key cause these. */
const warningLines: Rate = { perMinute: 20, burst: 20 };

/** Logs one line for each answered request, and one for its warning, even if the caller has disconnected. */
export function requestLog({
  log,
  clock,
}: {
  log: Logger;
  clock: Pick<Clock, 'monotonic'>;
}): (request: FastifyRequest, reply: FastifyReply) => void {
  // No field of these lines has the name of a secret, and searching for such fields costs as much as the line.
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
    if (!log.isLevelEnabled(level)) return; // the parent's level: a child logger does not follow changes
    const { method, id, routeOptions, url } = request; // getters: Fastify computes these
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

/** The log's fields for an error: more than its caller gets. */
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

/**
 * Clients put secrets in addresses by mistake, and the base64 of some contains slashes. Words and numbers, as addresses
 * have them, stay readable.
 */
function withoutSecrets(path: string): string {
  return path.replaceAll(/[^/]{5,}/g, (part) =>
    /^([a-z-]{1,15}|\d{1,20})$/.test(part) ? part : `${part.slice(0, 4)}…`,
  );
}
