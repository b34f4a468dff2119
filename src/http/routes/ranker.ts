import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { RankdError } from '../../base/errors.ts';
import type { rankAnswer } from '../answers.ts';
import { authenticateRequest } from '../authenticate.ts';
import { authorizeChange } from '../authorize.ts';
import { deadlineOf, makeChange } from '../changes.ts';
import type { Edge } from '../edge.ts';
import { sendError } from '../errors.ts';
import { parsePlaceId } from '../ids.ts';
import { parseRankRequest } from '../rank-request.ts';
import { jsonBody } from '../request-body.ts';

/** POST /v1/ranker?placeid=…: changes one member's rank. Answers 200 only if the platform was seen to hold the new rank. */
export function rankerRoute(server: FastifyInstance, { live, throttle, inOrderOfArrival }: Edge): void {
  server.post('/v1/ranker', { config: { needsKey: true } }, async (request, reply) => {
    const app = live.current; // for all of this change, whatever configuration is applied meanwhile
    const placeId = parsePlaceId(request.query, 'query');
    const keyRecord = await inOrderOfArrival(authenticateRequest(app, request, placeId));
    const caller = await authorizeChange(app, { request, reply, throttle, keyRecord, placeId, scope: 'rank' });
    if (caller instanceof RankdError) return sendError({ error: caller, request, reply });
    const rankRequest = parseRankRequest(jsonBody(request), app.webhooks.callerUrl);
    const asked = { request, reply, caller, placeId, asked: { request: rankRequest }, content: [placeId, rankRequest] };
    using deadline = deadlineOf(app, request);
    const { message, rankeeId, newRankId } = await makeChange(app, asked, deadline);
    return reply.send({ success: true, message, rankeeId, newRankId } satisfies z.infer<typeof rankAnswer>);
  });
}
