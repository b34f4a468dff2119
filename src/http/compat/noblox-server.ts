import * as z from 'zod';
import { RankdError } from '../../base/errors.ts';
import type { NamedRole } from '../../core/model.ts';
import type { CallContext } from '../../ports/index.ts';
import type { DaemonContext } from '../../usecases/daemon-context.ts';
import { headerText } from '../callers.ts';
import { anonymousRequest, asRoleName, type ChangeRequest, changeFor, ranksOf } from '../changes.ts';
import { publicCodes, statuses } from '../errors.ts';
import { memberId, notAnObject, parseFields, text } from '../fields.ts';
import { type Exchange, type Route, route } from '../route.ts';
import type { Family } from './family.ts';

/** The statuses of refusals for which a retry rarely helps. noblox.js-server returns 400 for all of them. */
const finalStatuses = new Set<number>([403, 404, 405, 409, 413, 422]);

/** Sources: noblox/noblox.js-server, and setRank and changeRank in noblox.js. */
const nobloxServer: Family = {
  name: 'noblox-server',
  secret: ({ headers }) => headerText(headers.authorization),
  statuses: Object.fromEntries(
    publicCodes.filter((code) => finalStatuses.has(statuses[code])).map((code) => [code, 400]),
  ),
  errorFields: ({ status }) => ({ statusCode: status }),
};

const rankError = 'must be a rank number, a role id or a role name';
const rankName = z.union([z.int(rankError).min(0, rankError), text.min(1)], { error: rankError }).nullish();
const rankBody = z
  .object({ rank: rankName, role: rankName }, notAnObject)
  .refine(({ rank, role }) => (rank ?? role) != null, { error: 'rank or role is missing' });

const stepsError = 'must be a whole number other than 0: the number of ranks up, or down if negative';
const wholeNumberText = z
  .string()
  .regex(/^-?\d{1,15}$/)
  .transform(Number);
const steps = z
  .union([z.int(stepsError), wholeNumberText], { error: stepsError })
  .refine((n) => n !== 0, { error: stepsError });
const stepsBody = z.object({ change: steps }, notAnObject);

const address = z.object({ group: memberId, user: memberId });

const member = {
  method: 'POST',
  key: { scope: 'rank', in: nobloxServer, place: 'query or Roblox-Id' },
  changesRanks: true,
} as const;

export const nobloxServerRoutes: readonly Route[] = [
  route({
    ...{ ...member, path: '/group/:group/member/:user/rank' },
    body: { description: 'The rank number, role id or role name.', schema: rankBody },
    handler: async (exchange) => {
      const { now } = await change(exchange, 'rank', (userId) => {
        const { rank, role } = exchange.body();
        const asked = asRoleName(rank ?? role ?? 0);
        if (typeof asked === 'number') return { request: anonymousRequest({ userId, newRankId: asked }) };
        return { request: anonymousRequest({ userId }), roleName: asked };
      });
      return exchange.reply.send(roleView(now));
    },
  }),
  route({
    ...{ ...member, path: '/group/:group/member/:user/rank-change' },
    body: { description: 'The number of ranks up, or down if negative.', schema: stepsBody },
    handler: async (exchange) => {
      const { before, now } = await change(exchange, 'rank-change', (userId) => {
        const { change } = exchange.body();
        const step = change > 0 ? 'promote' : 'demote';
        return { request: anonymousRequest({ userId }), step, stepCount: Math.abs(change) };
      });
      return { newRole: roleView(now), oldRole: roleView(before) };
    },
  }),
];

async function change(
  exchange: Exchange,
  operation: string,
  read: (userId: number) => ChangeRequest,
): Promise<ReturnType<typeof ranksOf>> {
  const { app, request } = exchange;
  const made = await changeFor(exchange, `noblox ${operation}`, async (call) => {
    const { group, user } = parseFields(address, request.params);
    const asked = read(user);
    await requireGroup(app, group, call);
    return asked;
  });
  return ranksOf(made.change);
}

async function requireGroup({ group }: DaemonContext, asked: number, call: CallContext): Promise<void> {
  const { id } = await group.about(call);
  if (id === asked) return;
  throw new RankdError('invalid_request', `This rankd manages group ${id}, not group ${asked}.`);
}

/** Returns a role in noblox.js's format. Older versions of noblox.js use `ID`. */
function roleView(role: NamedRole | undefined) {
  if (role === undefined) return null;
  const { id, name, rank } = role;
  return { id, ID: id, name, rank, memberCount: null };
}
