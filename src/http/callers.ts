import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { RankdError } from '../base/errors.ts';
import type { LimitsConfig } from '../config/config.ts';
import { type Caller, placeRefusal, refusalOf, refusalOfRobloxId } from '../core/access.ts';
import type { Key, KeyRecord } from '../core/model.ts';
import type { DaemonContext } from '../usecases/daemon-context.ts';
import { authenticate, fingerprintOf, type KeyFingerprint } from '../usecases/keys/authenticate.ts';
import { placeOf } from './fields.ts';
import { type Exchange, type FoundKey, familyOf } from './route.ts';
import { failedAuthLimit, failedPlaceLimit, type Limit, limitsOf } from './throttle.ts';

interface Admitted {
  caller: KeyRecord;
  /** `undefined` if the request names no place, which rankd allows only for keys that do not require one. */
  placeId: number | undefined;
}

/**
 * Authenticates and authorizes the caller, reading the place from the query or else from the Roblox-Id header. Throws a
 * refusal.
 */
export async function admitCaller(exchange: Exchange): Promise<Admitted> {
  const { api, app, request, route } = exchange;
  const placeId = placeOf(request);
  const secret = (familyOf(route)?.secret ?? keyIn)(request);
  const found = authenticateRequest(app, { request, placeId, fingerprint: fingerprintIn(secret) });
  const isVerification = route.key?.scope === 'verify';
  const keyRecord = await (isVerification ? found : api.inOrderOfArrival(found));
  const caller = isVerification
    ? authorize(exchange, keyRecord, placeId)
    : await authorizeChange(exchange, keyRecord, placeId);
  if (caller instanceof RankdError) throw caller;
  return { caller, placeId };
}

/** Returns the key's record or a refusal. Returns a promise only if the store is asynchronous. */
export function authenticateRequest(
  app: Pick<DaemonContext, 'store'>,
  {
    request,
    placeId,
    fingerprint = bearerFingerprint(request),
  }: { request: FastifyRequest; placeId: number | undefined; fingerprint?: KeyFingerprint | RankdError },
): FoundKey | Promise<FoundKey> {
  return fingerprint instanceof RankdError ? fingerprint : authenticate(app, { fingerprint, placeId });
}

/**
 * Caches the fingerprint of each connection's latest Authorization header, because the next request usually repeats it
 * and hashing a key costs more than all other checks of a request.
 */
const latest = new WeakMap<Duplex, { authorization: string; fingerprint: KeyFingerprint | RankdError }>();

function bearerFingerprint({ headers, raw: { socket } }: FastifyRequest): KeyFingerprint | RankdError {
  const { authorization = '' } = headers;
  const known = latest.get(socket);
  if (known?.authorization === authorization) return known.fingerprint;
  const fingerprint = fingerprintIn(bearerOf(headers));
  latest.set(socket, { authorization, fingerprint });
  return fingerprint;
}

function fingerprintIn(secret: string | undefined): KeyFingerprint | RankdError {
  return secret === undefined ? missing : fingerprintOf(secret);
}

const missing = RankdError.withoutStack(
  'missing_authorization',
  'Send the game key in the header "Authorization: Bearer <key>".',
  { details: { reason: 'no_key' } },
);

export function keyIn({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  return headerText(headers['x-api-key']) ?? bearerOf(headers);
}

function bearerOf({ authorization = '' }: IncomingHttpHeaders): string | undefined {
  return bearer.exec(authorization)?.[1];
}

const bearer = /^bearer +(\S+) *$/i;

export function headerText(given: string | string[] | undefined): string | undefined {
  return String(given ?? '').trim() || undefined;
}

/**
 * Returns `keyRecord` if the key has the route's scope, is allowed from the place and is within its limits. Otherwise,
 * returns a refusal instead of throwing it, because callers can cause thousands of refusals a second and throwing is
 * slower. If nodes can share the limits, leaves the limits on changes to `authorizeChange`.
 */
export function authorize(exchange: Exchange, keyRecord: FoundKey, placeId: number | undefined): FoundKey {
  const { api, app, request, reply, route } = exchange;
  if (keyRecord instanceof RankdError) return refuse(exchange, keyRecord);
  const { key, secretId, retiring } = keyRecord;
  const { throttle } = api;
  const scope = route.key?.scope ?? 'verify';
  const now = app.clock.now();
  const refusal = refusalOf(keyRecord, { scope, group: app.group.title, placeId, now, refusePlace });
  // A caller with an invalid secret must not learn that the secret was once valid.
  if (retiring !== undefined && refusal?.code !== 'invalid_key') reply.headers(retirementHeaders(retiring, key));
  if (refusal !== undefined) return refuse(exchange, refusal, key);
  const robloxId = String(request.headers['roblox-id'] ?? '');
  const isFree = app.robloxId === 'off' || key.isAnyPlace || placeId === undefined;
  const misplaced = isFree ? undefined : refusalOfRobloxId({ header: robloxId, placeId });
  if (misplaced !== undefined && app.robloxId === 'enforce') return refuse(exchange, misplaced, key);
  app.keyUses.note({ secretId, placeId, at: now });
  app.gameModules.note(placeId, request.headers['x-rankd-client']);
  request.notes.facts = { keyId: key.id, keyName: key.name, placeId };
  const isCountedByAll = scope !== 'verify' && throttle.isShared; // counted by `authorizeChange`
  const overLimit = isCountedByAll ? undefined : throttle.take(limitsOf[scope](app.limits, { key, placeId }), reply);
  if (overLimit !== undefined) return overLimit;
  if (misplaced !== undefined) {
    request.notes.facts = { ...request.notes.facts, robloxId: robloxId.slice(0, 32) };
    request.notes.warning = 'Roblox-Id does not match the place';
  }
  return keyRecord;
}

/**
 * Authorizes a request like `authorize` and, if several daemons can share the store, also counts the change against the
 * limits in the store.
 */
export async function authorizeChange(
  exchange: Exchange,
  keyRecord: FoundKey,
  placeId: number | undefined,
): Promise<FoundKey> {
  const { api, app, reply, route } = exchange;
  const caller = authorize(exchange, keyRecord, placeId);
  if (caller instanceof RankdError || !api.throttle.isShared) return caller;
  const limits = limitsOf[route.key?.scope ?? 'verify'](app.limits, { key: caller.key, placeId });
  return (await api.throttle.takeOfAll(limits, reply)) ?? caller;
}

/**
 * Caches each caller's latest refusal for a place, because a refused game retries constantly and creating the error
 * costs more than all checks.
 */
const latestRefusals = new WeakMap<Caller, RankdError>();

function refusePlace(caller: Caller, placeId: number): RankdError {
  const known = latestRefusals.get(caller);
  if (known?.details?.placeId === placeId) return known;
  const refusal = placeRefusal(caller, placeId);
  latestRefusals.set(caller, refusal);
  return refusal;
}

/**
 * Counts a refusal for the audit log and returns it, or returns `too_many_requests` if the network has sent too many
 * requests without a valid key, or if too many requests with this key came from wrong places. Only refused requests are
 * limited, because game servers share addresses and keys: one caller's mistakes must not lock out the others.
 */
export function refuse({ api, app, request, reply }: Exchange, refusal: RankdError, key?: Key): RankdError {
  const limits = limitsOn(refusal, app.limits, { from: request.from, key });
  const answer = api.throttle.take(limits, reply, refusal.details) ?? refusal;
  app.refused.count(answer, request.from);
  return answer;
}

function limitsOn(
  { code }: RankdError,
  limits: LimitsConfig,
  { from, key }: { from: string; key: Key | undefined },
): Limit[] {
  if (code === 'invalid_key' || code === 'missing_authorization') return [failedAuthLimit(limits, from)];
  if (code === 'place_not_whitelisted' && key !== undefined) return [failedPlaceLimit(limits, key)];
  return [];
}

/** Returns the headers that announce the rotation (RFC 9745) and the old secret's expiry (RFC 8594). */
function retirementHeaders(
  retiring: NonNullable<KeyRecord['retiring']>,
  { expiresAt = Number.POSITIVE_INFINITY }: Key,
): Record<string, string> {
  const until = Math.min(retiring.until, expiresAt);
  return { deprecation: `@${Math.floor(retiring.since / 1000)}`, sunset: new Date(until).toUTCString() };
}
