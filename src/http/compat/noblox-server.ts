import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import { RankdError } from '../../base/errors.ts';
import type { NamedRole } from '../../core/model.ts';
import type { CallContext } from '../../ports/index.ts';
import type { DaemonContext } from '../../usecases/daemon-context.ts';
import { type AskedChange, changeFor, ranksOf } from '../changes.ts';
import { type Edge, headerText } from '../edge.ts';
import { publicCodes, statuses } from '../errors.ts';
import { memberId, parseBody, text } from '../rank-request.ts';
import { jsonBody } from '../request-body.ts';
import { asRoleName } from '../v2/change-request.ts';
import type { Family } from './family.ts';
import { requestOf } from './requests.ts';

/** The statuses that mean "no, and asking again does not help": it knows 400 for all of them. */
const noes = new Set<number>([403, 404, 405, 409, 413, 422]);

/** noblox.js-server. Source: noblox/noblox.js-server, and setRank and changeRank of noblox.js. */
export const nobloxServer: Family = {
  name: 'noblox-server',
  secret: ({ headers }) => headerText(headers.authorization),
  statuses: Object.fromEntries(publicCodes.filter((code) => noes.has(statuses[code])).map((code) => [code, 400])),
  errorFields: ({ status }) => ({ statusCode: status }),
};

const member = '/group/:group/member/:user';

export function nobloxServerRoutes(server: FastifyInstance, edge: Edge): void {
  const options = { config: { needsKey: true, family: nobloxServer } };
  server.post(`${member}/rank`, options, async (request, reply) => {
    const { now } = await change(edge, { request, reply, operation: 'rank', ask: asRank });
    return reply.send(roleAnswer(now));
  });
  server.post(`${member}/rank-change`, options, async (request, reply) => {
    const { before, now } = await change(edge, { request, reply, operation: 'rank-change', ask: asRankChange });
    return reply.send({ newRole: roleAnswer(now), oldRole: roleAnswer(before) });
  });
}

interface Asking {
  request: FastifyRequest;
  reply: FastifyReply;
  operation: string;
  ask: (userId: number, json: unknown) => AskedChange['asked'];
}

async function change(edge: Edge, { ask, ...route }: Asking): Promise<ReturnType<typeof ranksOf>> {
  const { request } = route;
  const made = await changeFor(edge, {
    ...route,
    operation: `noblox ${route.operation}`,
    secret: nobloxServer.secret,
    read: async (app, call) => {
      const { group, user } = parseBody(parameters, request.params);
      const asked = ask(user, jsonBody(request));
      await requireGroup(app, group, call);
      return asked;
    },
  });
  return ranksOf(made.change);
}

const parameters = z.object({ group: memberId, user: memberId });

async function requireGroup({ group }: DaemonContext, asked: number, call: CallContext): Promise<void> {
  const { id } = await group.about(call);
  if (id === asked) return;
  throw new RankdError('invalid_request', `This rankd is for group ${id}, not for group ${asked}.`);
}

const rankError = 'must be a rank number, a role id or the name of a role';
const rankName = z.union([z.int(rankError).min(0, rankError), text.min(1)], { error: rankError }).nullish();
const notAnObject = { error: 'The body must be a JSON object' };
const rankBody = z
  .object({ rank: rankName, role: rankName }, notAnObject)
  .refine(({ rank, role }) => (rank ?? role) != null, { error: 'rank or role is missing' });
const changeError = 'must be a whole number other than 0: how many ranks up, or with a minus down';
const changeBody = z.object(
  {
    change: z
      .union(
        [
          z.int(),
          z
            .string()
            .regex(/^-?\d{1,15}$/)
            .transform(Number),
        ],
        { error: changeError },
      )
      .refine((n) => n !== 0, { error: changeError }),
  },
  notAnObject,
);

function asRank(userId: number, json: unknown): AskedChange['asked'] {
  const { rank, role } = parseBody(rankBody, json);
  const asked = asRoleName(rank ?? role ?? 0);
  if (typeof asked === 'number') return { request: requestOf({ userId, newRankId: asked }) };
  return { request: requestOf({ userId }), roleName: asked };
}

function asRankChange(userId: number, json: unknown): AskedChange['asked'] {
  const { change } = parseBody(changeBody, json);
  return { request: requestOf({ userId }), step: change > 0 ? 'promote' : 'demote', stepCount: Math.abs(change) };
}

/** A role as noblox.js tells one. Older versions call its id `ID`. */
function roleAnswer(role: NamedRole | undefined) {
  if (role === undefined) return null;
  const { id, name, rank } = role;
  return { id, ID: id, name, rank, memberCount: null };
}
