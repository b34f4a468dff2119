import type { FastifyReply, FastifyRequest } from 'fastify';
import { RankdError } from '../base/errors.ts';
import type { LimitsConfig } from '../config/config.ts';
import { type Caller, placeRefusal, refusalOf } from '../core/access.ts';
import type { Key, KeyRecord, Scope } from '../core/model.ts';
import { refusalOfRobloxId } from '../core/roblox-id.ts';
import type { DaemonContext } from '../usecases/daemon-context.ts';
import { failedAuthLimit, failedPlaceLimit, type Limit, limitsOf, type Throttle } from './throttle.ts';

export interface KeyedRequest {
  request: FastifyRequest;
  reply: FastifyReply;
  throttle: Throttle;
  keyRecord: KeyRecord | RankdError;
  /** `undefined` if the request names none. */
  placeId: number | undefined;
  scope: Scope;
}

/**
 * The caller, if the key may do `scope` from the place and has not done it too often; otherwise the refusal. It is returned
 * rather than thrown, because callers can cause it thousands of times a second.
 */
export function authorize(app: DaemonContext, keyed: KeyedRequest): KeyRecord | RankdError {
  const { request, reply, throttle, keyRecord, placeId, scope } = keyed;
  if (keyRecord instanceof RankdError) return refuse(app, keyed, keyRecord);
  const { key, secretId, retiring } = keyRecord;
  const now = app.clock.now();
  const refusal = refusalOf(keyRecord, { scope, group: app.group.title, placeId, now, refusePlace });
  // A secret that is not accepted is told nothing, not even that it was once accepted.
  if (retiring !== undefined && refusal?.code !== 'invalid_key') reply.headers(retirementHeaders(retiring, key));
  if (refusal !== undefined) return refuse(app, keyed, refusal);
  const robloxId = String(request.headers['roblox-id'] ?? '');
  const isFree = app.robloxId === 'off' || key.isAnyPlace || placeId === undefined;
  const misplaced = isFree ? undefined : refusalOfRobloxId({ header: robloxId, placeId });
  if (misplaced !== undefined && app.robloxId === 'enforce') return refuse(app, keyed, misplaced);
  app.keyUses.note({ secretId, placeId, at: now });
  request.notes.facts = { keyId: key.id, keyName: key.name, placeId };
  const isCountedByAll = scope !== 'verify' && throttle.isShared; // then `authorizeChange` counts it
  const overLimit = isCountedByAll ? undefined : throttle.take(limitsOf[scope](app.limits, { key, placeId }), reply);
  if (overLimit !== undefined) return overLimit;
  if (misplaced !== undefined) {
    request.notes.facts = { ...request.notes.facts, robloxId: robloxId.slice(0, 32) };
    request.notes.warning = 'Roblox-Id does not fit the place';
  }
  return keyRecord;
}

/** As `authorize`. Where several daemons share a store, changes are counted for all of them together, which has to be waited for. */
export async function authorizeChange(app: DaemonContext, keyed: KeyedRequest): Promise<KeyRecord | RankdError> {
  const caller = authorize(app, keyed);
  const { throttle, reply, placeId, scope } = keyed;
  if (caller instanceof RankdError || !throttle.isShared) return caller;
  return (await throttle.takeOfAll(limitsOf[scope](app.limits, { key: caller.key, placeId }), reply)) ?? caller;
}

/** The latest of each caller. A game that is shut out asks again and again, and to make the error takes longer than all checks. */
const shutOut = new WeakMap<Caller, RankdError>();

function refusePlace(caller: Caller, placeId: number): RankdError {
  const known = shutOut.get(caller);
  if (known?.details?.placeId === placeId) return known;
  const refusal = placeRefusal(caller, placeId);
  shutOut.set(caller, refusal);
  return refusal;
}

/**
 * Counts a refused caller for the audit. One whose network sends too many keys that are not accepted, or whose key is tried with too
 * many places, is told to slow down instead. Only what is refused counts: game servers share addresses and keys, and wrong keys and
 * places of others must not lock out right ones.
 */
function refuse(app: DaemonContext, keyed: KeyedRequest, refusal: RankdError): RankdError {
  const answer = keyed.throttle.take(limitsOn(refusal, app.limits, keyed), keyed.reply, refusal.details) ?? refusal;
  app.refused.count(answer, keyed.request.from);
  return answer;
}

function limitsOn({ code }: RankdError, limits: LimitsConfig, { request, keyRecord }: KeyedRequest): Limit[] {
  if (code === 'invalid_key' || code === 'missing_authorization') return [failedAuthLimit(limits, request.from)];
  if (code === 'place_not_whitelisted' && !(keyRecord instanceof RankdError))
    return [failedPlaceLimit(limits, keyRecord.key)];
  return [];
}

/** Since when the secret is the old one of a rotation (RFC 9745), and when it will be refused (RFC 8594). */
function retirementHeaders(
  retiring: NonNullable<KeyRecord['retiring']>,
  { expiresAt = Number.POSITIVE_INFINITY }: Key,
): Record<string, string> {
  const until = Math.min(retiring.until, expiresAt);
  return { deprecation: `@${Math.floor(retiring.since / 1000)}`, sunset: new Date(until).toUTCString() };
}
