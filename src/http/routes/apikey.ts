import type { FastifyInstance } from 'fastify';
import { RankdError } from '../../base/errors.ts';
import type { KeyRecord } from '../../core/model.ts';
import { authenticateRequest } from '../authenticate.ts';
import { authorize } from '../authorize.ts';
import type { Edge } from '../edge.ts';
import { sendError } from '../errors.ts';
import { parsePlaceId } from '../ids.ts';
import { jsonBody } from '../request-body.ts';

/** POST /v1/apikey: the workspace id behind a key that is good for the place, as a bare JSON string. */
export function apikeyRoute(server: FastifyInstance, { live, throttle }: Edge): void {
  server.post('/v1/apikey', { config: { needsKey: true } }, (request, reply) => {
    const app = live.current;
    const placeId = parsePlaceId(jsonBody(request), 'body');
    const answer = (keyRecord: KeyRecord | RankdError): void => {
      const caller = authorize(app, { request, reply, throttle, keyRecord, placeId, scope: 'verify' });
      if (caller instanceof RankdError) return void sendError({ error: caller, request, reply });
      request.notes.level = 'debug'; // games verify all the time, and nothing follows from it
      reply.type('application/json; charset=utf-8').send(JSON.stringify(caller.workspace.id));
    };
    const keyRecord = authenticateRequest(app, request, placeId);
    return keyRecord instanceof Promise ? keyRecord.then(answer) : answer(keyRecord);
  });
}
