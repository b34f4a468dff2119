import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Hold, RankChange } from '../../core/model.ts';
import { liftHold, requireLength } from '../../usecases/holds/holds.ts';
import type { suspensionAnswer } from '../answers.ts';
import { answered, callerOf, callIn, deadlineOf, idempotencyOf, makeChange } from '../changes.ts';
import { type Edge, letIn } from '../edge.ts';
import { jsonBody } from '../request-body.ts';
import { parseStep } from './change-request.ts';
import { answerOf, withMember } from './changes.ts';
import { parseSuspend } from './suspension-request.ts';

/** POST /v2/suspend and /v2/unsuspend: take all roles from a member for a time, and give exactly them back. */
export function suspensionRoutes(server: FastifyInstance, edge: Edge): void {
  const keyed = { config: { needsKey: true } };
  server.post('/v2/suspend', keyed, (request, reply) => suspend(edge, request, reply));
  server.post('/v2/unsuspend', keyed, (request, reply) => unsuspend(edge, request, reply));
}

async function suspend(edge: Edge, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const app = edge.live.current; // for all of this change, whatever configuration is applied meanwhile
  const { caller, placeId } = await letIn(app, edge, { request, reply, scope: 'suspend' });
  const { username, forMs, request: body } = parseSuspend(jsonBody(request));
  requireLength(app, forMs, 'invalid_request');
  using deadline = deadlineOf(app, request);
  const asked = {
    request: await withMember(app, { request: body, username }, callIn(deadline, caller)),
    hold: { kind: 'suspension', endsAt: app.clock.now() + forMs } as const,
  };
  const content = ['suspend', placeId, body, username, forMs];
  const change = await makeChange(app, { request, reply, caller, placeId, asked, content }, deadline);
  return reply.send(suspensionOf(change, { workspace: caller.workspace, requestId: request.id }));
}

async function unsuspend(edge: Edge, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const app = edge.live.current;
  const { caller, placeId } = await letIn(app, edge, { request, reply, scope: 'suspend' });
  const { username, request: body } = parseStep(jsonBody(request));
  using deadline = deadlineOf(app, request);
  const call = callIn(deadline, caller);
  const { rankeeId } = await withMember(app, { request: body, username }, call);
  const { rankerId, rankerName, command: typed, reason } = body;
  const command = {
    ...{ rankeeId, caller: callerOf(caller, placeId), force: false, reason },
    asked: { rankerId, rankerName, ...(typed !== undefined && { command: typed }) },
    ...idempotencyOf(request.headers['idempotency-key'], ['unsuspend', placeId, body, username]),
  };
  const { finished, hold, replayed } = await liftHold(app, command, call);
  const change = answered(app, { request, reply }, { ...finished, replayed });
  return reply.send(suspensionOf(change, { workspace: caller.workspace, requestId: request.id }, hold));
}

function suspensionOf(
  change: RankChange,
  about: Parameters<typeof answerOf>[1],
  lifted?: Hold,
): z.infer<typeof suspensionAnswer> {
  const { hold, dryRun } = change;
  const endsAt = hold?.does === 'begin' ? hold.endsAt : lifted?.endsAt;
  return {
    ...answerOf(change, about),
    until: endsAt === undefined ? null : Math.ceil(endsAt / 1_000),
    suspensionId: dryRun ? null : (hold?.id ?? null),
  };
}
