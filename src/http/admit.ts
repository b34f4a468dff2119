import type { FastifyReply, FastifyRequest } from 'fastify';
import { refusalOf } from '../core/access.ts';
import type { Scope } from '../core/model.ts';
import type { Presented } from '../ports.ts';
import { identify } from '../usecases/identify.ts';
import type { HttpApp } from './server.ts';

/** Who sends the request, where their key may do `scope` from the place. Throws the refusal. */
export async function admit(
  app: HttpApp,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  { placeId, scope }: { placeId: number; scope: Scope },
): Promise<Presented> {
  const presented = await identify(app, { authorization: request.headers.authorization, placeId });
  const now = app.clock.now();
  const refusal = refusalOf(presented, { scope, placeId, now });
  // A secret that is not accepted learns nothing, not even that it once was.
  if (refusal?.code !== 'invalid_key') reply.headers(retirementHeaders(presented));
  if (refusal !== undefined) throw refusal;
  app.keyUses.note({ secretId: presented.secretId, placeId, at: now });
  request.facts = { keyId: presented.key.id, placeId };
  return presented;
}

/** Since when the secret is the old one of a rotation (RFC 9745), and when it will be refused (RFC 8594). */
function retirementHeaders({ retiring, key }: Presented): Record<string, string> {
  if (retiring === undefined) return {};
  const until = Math.min(retiring.until, key.expiresAt ?? Number.POSITIVE_INFINITY);
  return { deprecation: `@${Math.floor(retiring.since / 1000)}`, sunset: new Date(until).toUTCString() };
}
