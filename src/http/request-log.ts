import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RankdError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { describeRefusal } from '../base/refusal-details.ts';
import type { Clock } from '../ports/index.ts';
import type { OpenConnection } from './connections.ts';
import { type Rate, TokenBuckets } from './token-buckets.ts';

/** What is noted of a request while it is answered. Its line in the log is made from it. */
export interface Notes {
  /** When its head had arrived, on `Clock.monotonic()`: its deadline counts from then. */
  arrivedAt: number;
  connection: OpenConnection;
  /** Of the line. */
  level: 'debug' | 'info' | 'warn';
  /** What the line says besides status and time. */
  facts: Record<string, unknown>;
  /** What it was refused or failed with. */
  error: RankdError | undefined;
  /** What the operator should look at though the request was let in. */
  warning: string | undefined;
}

/** Of each code, and of each warning. The audit has the sums: whoever tries keys or places must not fill the disk with the log of it. */
const maxTold: Rate = { perMinute: 20, burst: 20 };
/** More than there are. */
const maxKinds = 100;

/** Writes one line for each request as it is answered, and one for what it warns of, also where its caller hung up before. */
export function requestLog({
  log,
  clock,
}: {
  log: Logger;
  clock: Pick<Clock, 'monotonic'>;
}): (request: FastifyRequest, reply: FastifyReply) => void {
  // No field of these lines is named after a secret, and looking for such fields costs as much as the line.
  const lines = log.child({}, { redact: [], level: 'trace' });
  const buckets = new TokenBuckets(clock, maxKinds);
  const isDue = (kind: string) => buckets.take(kind, maxTold).isAllowed;
  return (request, { statusCode }) => {
    const { arrivedAt, level: wanted, facts, error, warning } = request.notes;
    if (warning !== undefined && isDue(warning)) log.warn({ requestId: request.id, ...facts }, warning);
    const isRefusal = statusCode >= 400 && statusCode < 500 && facts['changeId'] === undefined;
    const isTold = !isRefusal || isDue(String(error?.code));
    const level = isTold ? wanted : 'debug';
    if (!log.isLevelEnabled(level)) return; // of the parent: a child does not hear of a new level
    const { method, id, routeOptions, url } = request; // Fastify puts them together when they are asked for
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

/** The path as routes name it, without the query; also of an address in absolute form. */
export function pathOf(url: string): string {
  const path = url.replace(/^https?:\/\/[^/?]*/i, '').split('?', 1)[0] || '/';
  return path.replaceAll(/\/+/g, '/').replace(/(.)\/$/, '$1');
}

const maxPathLength = 200;

/** Secrets end up in addresses by mistake; no part of one of rankd's own is long enough to be one. */
function withoutSecrets(path: string): string {
  return path.replaceAll(/([^/]{8})[^/]{8,}/g, '$1…');
}
