import type { FastifyReply, FastifyRequest } from 'fastify';
import { refusalOf } from '../core/access.ts';
import type { Key, Scope } from '../core/model.ts';
import { refusalOfRobloxId } from '../core/roblox-id.ts';
import { isRankdError } from '../errors.ts';
import type { Presented } from '../ports.ts';
import { identify } from '../usecases/identify.ts';
import type { InboundLimits } from './inbound-limits.ts';
import { networkOf } from './network-of.ts';
import type { HttpApp } from './server.ts';

export interface Exchange {
  request: FastifyRequest;
  reply: FastifyReply;
  inbound: InboundLimits;
}

/** Who sends the request, where their key may do `scope` from the place. Throws the refusal. */
export async function admit(
  app: HttpApp,
  exchange: Exchange,
  { placeId, scope }: { placeId: number; scope: Scope },
): Promise<Presented> {
  const { request, reply } = exchange;
  const now = app.clock.now();
  const { authorization } = request.headers;
  let presented: Presented;
  try {
    presented = await identify(app, { authorization, placeId });
  } catch (error) {
    turnAway(app, exchange, error);
  }
  const refusal = refusalOf(presented, { scope, placeId, now });
  // A secret that is not accepted learns nothing, not even that it once was.
  if (presented.retiring !== undefined && refusal?.code !== 'invalid_key') {
    reply.headers(retirementHeaders(presented.retiring, presented.key));
  }
  if (refusal !== undefined) turnAway(app, exchange, refusal);
  checkRobloxId(app, request, { placeId, keyId: presented.key.id });
  app.keyUses.note({ secretId: presented.secretId, placeId, at: now });
  request.facts = { keyId: presented.key.id, placeId };
  return presented;
}

/**
 * Throws the refusal; to an address that sends too many keys that are not accepted, that it should slow down. Only ever asked
 * once a key was found wrong: game servers share addresses, and somebody's wrong keys must not lock out a right one.
 */
function turnAway({ limits }: HttpApp, { request, reply, inbound }: Exchange, refusal: unknown): never {
  if (!isRankdError(refusal, 'invalid_key', 'missing_authorization')) throw refusal;
  const { failedAuthPerMinute: perMinute } = limits;
  const limit = {
    name: 'failed-auth',
    of: networkOf(request.ip),
    perMinute,
    burst: perMinute,
    refusal: 'Too many requests without a key that is accepted have come from this address; check the key.',
    internal: refusal.internal ?? 'no key',
  };
  inbound.take([limit], reply);
  throw refusal;
}

function checkRobloxId(
  { robloxId, log }: HttpApp,
  { headers, id }: FastifyRequest,
  { placeId, keyId }: { placeId: number; keyId: string },
): void {
  if (robloxId === 'off') return;
  const header = [headers['roblox-id']].flat().join();
  const refusal = refusalOfRobloxId({ header, placeId });
  if (refusal === undefined) return;
  if (robloxId === 'enforce') throw refusal;
  log.warn({ requestId: id, keyId, placeId, robloxId: header.slice(0, 32) }, 'Roblox-Id does not fit the place');
}

/** Since when the secret is the old one of a rotation (RFC 9745), and when it will be refused (RFC 8594). */
function retirementHeaders(
  retiring: NonNullable<Presented['retiring']>,
  { expiresAt = Number.POSITIVE_INFINITY }: Key,
): Record<string, string> {
  const until = Math.min(retiring.until, expiresAt);
  return { deprecation: `@${Math.floor(retiring.since / 1000)}`, sunset: new Date(until).toUTCString() };
}
