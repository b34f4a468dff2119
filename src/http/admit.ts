import type { FastifyReply, FastifyRequest } from 'fastify';
import { isRankdError, RankdError } from '../base/errors.ts';
import { refusalOf } from '../core/access.ts';
import type { Key, Scope } from '../core/model.ts';
import { refusalOfRobloxId } from '../core/roblox-id.ts';
import type { KeyRecord } from '../ports/index.ts';
import type { DaemonContext } from '../usecases/daemon-context.ts';
import { networkFrom } from './connections.ts';
import type { InboundLimits, Limit } from './inbound-limits.ts';

export interface Exchange {
  request: FastifyRequest;
  reply: FastifyReply;
  inbound: InboundLimits;
}

interface Entry {
  presented: KeyRecord | RankdError;
  placeId: number;
  scope: Scope;
  /** How often the key may do it. */
  limitsOf: (key: Key) => Limit[];
}

/**
 * Who sends the request, where their key may do `scope` from the place and has not done it too often; or the refusal, which is
 * returned: it is no rare thing, and throwing costs.
 */
export function admit(
  app: DaemonContext,
  exchange: Exchange,
  { presented, placeId, scope, limitsOf }: Entry,
): KeyRecord | RankdError {
  const { request, reply, inbound } = exchange;
  if (presented instanceof RankdError) return turnAway(app, exchange, presented);
  const now = app.clock.now();
  const refusal = refusalOf(presented, { scope, placeId, now });
  // A secret that is not accepted learns nothing, not even that it once was.
  if (presented.retiring !== undefined && refusal?.code !== 'invalid_key') {
    reply.headers(retirementHeaders(presented.retiring, presented.key));
  }
  if (refusal !== undefined) return turnAway(app, exchange, refusal);
  const { key, secretId } = presented;
  const misplaced = refusalOfPlace(app, request, placeId);
  if (misplaced !== undefined && app.robloxId === 'enforce') return turnAway(app, exchange, misplaced);
  app.keyUses.note({ secretId, placeId, at: now });
  request.notes.facts = { keyId: key.id, placeId };
  const overLimit = inbound.take(limitsOf(key), reply);
  if (overLimit !== undefined) return overLimit;
  if (misplaced !== undefined) warnOfPlace(request);
  return presented;
}

function turnAway(app: DaemonContext, exchange: Exchange, refusal: RankdError): RankdError {
  const answer = throttled(app, exchange, refusal) ?? refusal;
  app.refused.count(answer);
  return answer;
}

/**
 * Tells an address that sends too many keys that are not accepted to slow down. It is only asked once a key was found to be
 * wrong: game servers share addresses, and somebody's wrong keys must not lock out a right one.
 */
function throttled({ limits }: DaemonContext, exchange: Exchange, refusal: RankdError): RankdError | undefined {
  if (!isRankdError(refusal, 'invalid_key', 'missing_authorization')) return undefined;
  const { request, reply, inbound } = exchange;
  const { failedAuthPerMinute: perMinute } = limits;
  const limit = { name: 'failed-auth', of: networkFrom(request), perMinute, burst: perMinute } as const;
  return inbound.take([{ ...limit, details: refusal.details }], reply);
}

/** Of a request whose place is not the one that Roblox says it comes from, where anybody wants to know. */
function refusalOfPlace({ robloxId }: DaemonContext, request: FastifyRequest, placeId: number): RankdError | undefined {
  return robloxId === 'off' ? undefined : refusalOfRobloxId({ header: robloxIdOf(request), placeId });
}

function warnOfPlace(request: FastifyRequest): void {
  request.notes.facts = { ...request.notes.facts, robloxId: robloxIdOf(request).slice(0, 32) };
  request.notes.warning = 'Roblox-Id does not fit the place';
}

function robloxIdOf({ headers }: FastifyRequest): string {
  return [headers['roblox-id']].flat().join();
}

/** Since when the secret is the old one of a rotation (RFC 9745), and when it will be refused (RFC 8594). */
function retirementHeaders(
  retiring: NonNullable<KeyRecord['retiring']>,
  { expiresAt = Number.POSITIVE_INFINITY }: Key,
): Record<string, string> {
  const until = Math.min(retiring.until, expiresAt);
  return { deprecation: `@${Math.floor(retiring.since / 1000)}`, sunset: new Date(until).toUTCString() };
}
