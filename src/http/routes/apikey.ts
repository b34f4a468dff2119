import type { FastifyInstance } from 'fastify';
import { RankdError } from '../../base/errors.ts';
import type { Key } from '../../core/model.ts';
import type { DaemonContext } from '../../usecases/daemon-context.ts';
import { authenticate } from '../../usecases/keys/authenticate.ts';
import { admit } from '../admit.ts';
import { fingerprintFrom } from '../connections.ts';
import { parsePlaceId } from '../ids.ts';
import type { InboundLimits, Limit } from '../inbound-limits.ts';
import { jsonBody } from '../json-body.ts';
import { sendError } from '../send-error.ts';

/** POST /v1/apikey: the workspace id behind a key that is good for the place, as a bare JSON string. */
export function apikeyRoute(server: FastifyInstance, app: DaemonContext, inbound: InboundLimits): void {
  const limitsOf = ({ id }: Key): Limit[] => {
    const { verifyPerMinute } = app.limits;
    return [{ name: 'verify', of: id, perMinute: verifyPerMinute, burst: verifyPerMinute }];
  };
  server.post('/v1/apikey', (request, reply) => {
    const placeId = parsePlaceId(jsonBody(request), 'body');
    const presented = authenticate(app, { apiKey: fingerprintFrom(request), placeId });
    const caller = admit(app, { request, reply, inbound }, { presented, placeId, scope: 'verify', limitsOf });
    if (caller instanceof RankdError) return void sendError(app, { error: caller, request, reply });
    request.notes.level = 'debug'; // games verify all the time, and nothing comes of it
    return void reply.type('application/json; charset=utf-8').send(JSON.stringify(caller.workspace.id));
  });
}
