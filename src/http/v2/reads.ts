import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { isSimulatedGroup } from '../../core/group-title.ts';
import type { Key, Role, Workspace } from '../../core/model.ts';
import type { CallContext } from '../../ports/index.ts';
import type { DaemonContext } from '../../usecases/daemon-context.ts';
import { findGivable, findMemberRoles } from '../../usecases/group/group.ts';
import { openHold } from '../../usecases/holds/open-hold.ts';
import { findUser } from '../../usecases/people/find-user.ts';
import type { memberAnswer, rolesAnswer, workspaceAnswer } from '../answers.ts';
import { callIn, deadlineOf } from '../changes.ts';
import { type Edge, letIn } from '../edge.ts';
import { parseMemberQuery } from './member-query.ts';

/** GET /v2/member, /v2/roles and /v2/workspace: what rankd knows of a member, of the group's roles and of itself. */
export function readRoutes(server: FastifyInstance, edge: Edge): void {
  const keyed = { config: { needsKey: true } };
  server.get('/v2/member', keyed, (request, reply) => answer(edge, { request, reply, read: member }));
  server.get('/v2/roles', keyed, (request, reply) => answer(edge, { request, reply, read: roles }));
  server.get('/v2/workspace', keyed, (request, reply) => answer(edge, { request, reply, read: workspace }));
}

interface Reading {
  request: FastifyRequest;
  reply: FastifyReply;
  read: (app: DaemonContext, asked: Asked, call: CallContext) => Promise<{ message: string }>;
}

interface Asked {
  query: unknown;
  key: Key;
  workspace: Workspace;
}

async function answer(edge: Edge, { request, reply, read }: Reading): Promise<FastifyReply> {
  const app = edge.live.current;
  const { caller } = await letIn(app, edge, { request, reply, scope: 'verify' });
  using deadline = deadlineOf(app, request);
  const { key, workspace } = caller;
  const { message, ...found } = await read(app, { query: request.query, key, workspace }, callIn(deadline, caller));
  request.notes.level = 'debug'; // games ask all the time, and nothing follows from it
  const mark = isSimulatedGroup(app.group.title) ? ' (simulated group)' : '';
  return reply.send({ success: true, requestId: request.id, message: message + mark, ...found });
}

/** What an answer has beside the fields that all have. */
type Told<Answer extends z.ZodType> = Omit<z.infer<Answer>, 'success' | 'requestId'>;

async function member(app: DaemonContext, { query }: Asked, call: CallContext): Promise<Told<typeof memberAnswer>> {
  const asked = parseMemberQuery(query);
  const userId = 'robloxUserId' in asked ? asked.robloxUserId : (await findUser(app, asked.username, call)).id;
  const found = await findMemberRoles(app, userId, call);
  const hold = await openHold(app, userId);
  const suspension = hold?.kind === 'suspension' ? hold : undefined;
  const { rank = 0, highest, held = [] } = found ?? {};
  const who = 'username' in asked ? `${asked.username} (${userId})` : `User ${userId}`;
  return {
    message: highest === undefined ? `${who} is not in the group.` : `${who} is ${highest.name} (rank ${rank}).`,
    robloxUserId: userId,
    inGroup: found !== undefined,
    rank,
    roleId: highest?.id ?? null,
    roleName: highest?.name ?? null,
    roles: held.filter(({ kind }) => kind !== 'private').map(title), // the group hides those
    suspended: suspension !== undefined,
    suspendedUntil: suspension?.endsAt === undefined ? null : Math.ceil(suspension.endsAt / 1000),
  };
}

async function roles(app: DaemonContext, { key }: Asked, call: CallContext): Promise<Told<typeof rolesAnswer>> {
  const { roles, givable } = await findGivable(app, key, call);
  return {
    message: `The group has ${roles.length} roles; this key can give ${givable.length} of them.`,
    roles: roles.map((role) => ({ ...title(role), canGive: givable.includes(role) })),
  };
}

function title({ id, name, rank }: Role): Pick<Role, 'id' | 'name' | 'rank'> {
  return { id, name, rank };
}

async function workspace(
  app: DaemonContext,
  { workspace: { id, name } }: Asked,
  call: CallContext,
): Promise<Told<typeof workspaceAnswer>> {
  const group = await app.group.about(call);
  return {
    message: `This is rankd for the group ${group.name} (${group.id}).`,
    workspace: {
      ...{ workspaceId: id, name, discordGuildId: null, robloxGroupId: String(group.id) },
      ...{ verified: app.deadCredential() === undefined, affiliate: false, botType: 'custom' },
    },
  };
}
