import type { FastifyInstance } from 'fastify';
import { admit } from '../admit.ts';
import { parsePlaceId } from '../ids.ts';
import { InboundLimit } from '../inbound-limit.ts';
import { jsonBody } from '../json-body.ts';
import type { HttpApp } from '../server.ts';

/** POST /v1/apikey: the workspace id behind a key that is good for the place, as a bare JSON string. */
export function apikeyRoute(server: FastifyInstance, app: HttpApp): void {
  const { verifyPerMinute } = app.limits;
  const limit = new InboundLimit(app.clock, { name: 'verify', perMinute: verifyPerMinute, burst: verifyPerMinute });
  server.post('/v1/apikey', async (request, reply) => {
    const placeId = parsePlaceId(await jsonBody(request), 'body');
    const { workspace, key } = await admit(app, { request, reply }, { placeId, scope: 'verify' });
    limit.take(key.id, reply);
    return reply.type('application/json; charset=utf-8').send(JSON.stringify(workspace.id));
  });
}
