import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { type Direction, directions, type RankChange, type RankRequest, type Workspace } from '../../core/model.ts';
import type { CallContext } from '../../ports/index.ts';
import type { DaemonContext } from '../../usecases/daemon-context.ts';
import { findUser } from '../../usecases/people/find-user.ts';
import type { changeAnswer } from '../answers.ts';
import { changeFor, ranksOf } from '../changes.ts';
import type { Edge } from '../edge.ts';
import { jsonBody } from '../request-body.ts';
import { type Asked, parseSetRank, parseStep } from './change-request.ts';

/** POST /v2/rank, /v2/promote and /v2/demote: change one member's rank, and tell the one from before and the new one. */
export function changeRoutes(server: FastifyInstance, edge: Edge): void {
  const keyed = { config: { needsKey: true } };
  server.post('/v2/rank', keyed, (request, reply) => answerChange(edge, { request, reply, parse: parseSetRank }));
  for (const step of directions)
    server.post(`/v2/${step}`, keyed, (request, reply) =>
      answerChange(edge, { request, reply, parse: parseStep, step }),
    );
}

interface Asking {
  request: FastifyRequest;
  reply: FastifyReply;
  parse: (json: unknown) => Asked;
  step?: Direction;
}

async function answerChange(edge: Edge, { request, reply, parse, step }: Asking): Promise<FastifyReply> {
  const { change, caller } = await changeFor(edge, {
    ...{ request, reply, operation: step ?? 'rank' },
    read: async (app, call) => {
      const { username, ...asked } = parse(jsonBody(request));
      const named = await withMember(app, { request: asked.request, username }, call);
      return { ...asked, request: named, ...(step !== undefined && { step }) };
    },
  });
  return reply.send(answerOf(change, { workspace: caller.workspace, requestId: request.id }));
}

/** The request with the member whom a name leads to. */
export async function withMember(
  app: DaemonContext,
  { request, username }: { request: RankRequest; username: string | undefined },
  call: CallContext,
): Promise<RankRequest> {
  if (username === undefined) return request;
  const { id, name } = await findUser(app, username, call);
  return { ...request, rankeeId: id, rankeeName: name };
}

/** What every change on /v2 answers. */
export function answerOf(
  change: RankChange,
  { workspace, requestId }: { workspace: Workspace; requestId: string },
): z.infer<typeof changeAnswer> {
  const { before, now } = ranksOf(change);
  const { message, rankeeId, id } = change;
  return {
    ...{ success: true, requestId, message, workspaceId: workspace.id, robloxUserId: rankeeId },
    ...{ oldRank: before?.rank ?? null, newRank: now?.rank ?? null, roleName: now?.name ?? null, changeId: id },
  };
}
