import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Deadline } from '../../base/clock.ts';
import { type Direction, directions, type RankChange, type RankRequest, type Workspace } from '../../core/model.ts';
import type { DaemonContext } from '../../usecases/daemon-context.ts';
import { findUser } from '../../usecases/people/find-user.ts';
import type { changeAnswer } from '../answers.ts';
import { deadlineOf, makeChange } from '../changes.ts';
import { type Edge, letIn } from '../edge.ts';
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
  const app = edge.live.current; // for all of this change, whatever configuration is applied meanwhile
  const { caller, placeId } = await letIn(app, edge, { request, reply, scope: 'rank' });
  const { username, roleName, ...body } = parse(jsonBody(request));
  using deadline = deadlineOf(app, request);
  const asked = {
    request: await withMember(app, { request: body.request, username, lane: caller.key.id }, deadline),
    ...(step !== undefined && { step }),
    ...(roleName !== undefined && { roleName }),
  };
  const content = [step ?? 'rank', placeId, body.request, username, roleName];
  const change = await makeChange(app, { request, reply, caller, placeId, asked, content }, deadline);
  return reply.send(answerOf(change, { workspace: caller.workspace, requestId: request.id }));
}

/** The request with the member whom a name leads to. */
export async function withMember(
  app: DaemonContext,
  { request, username, lane }: { request: RankRequest; username: string | undefined; lane: string },
  { signal, at: deadlineAt }: Deadline,
): Promise<RankRequest> {
  if (username === undefined) return request;
  const { id, name } = await findUser(app, username, { signal, deadlineAt, lane });
  return { ...request, rankeeId: id, rankeeName: name };
}

/** What every change on /v2 answers. */
export function answerOf(
  { message, rankeeId, id, roleId, oldRoleId, roles = [] }: RankChange,
  { workspace, requestId }: { workspace: Workspace; requestId: string },
): z.infer<typeof changeAnswer> {
  const role = roles.find((one) => one.id === roleId);
  return {
    ...{ success: true, requestId, message, workspaceId: workspace.id, robloxUserId: rankeeId },
    oldRank: roles.find((one) => one.id === oldRoleId)?.rank ?? null,
    newRank: role?.rank ?? null,
    roleName: role?.name ?? null,
    changeId: id,
  };
}
