import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import { directions, type RankChange } from '../../core/model.ts';
import { namesOf } from '../../usecases/people/name-members.ts';
import { type ChangeRoute, changeFor, ranksOf } from '../changes.ts';
import { type Edge, headerText, keyIn } from '../edge.ts';
import { id } from '../ids.ts';
import { memberId, optionalText, parseBody } from '../rank-request.ts';
import { jsonBody } from '../request-body.ts';
import type { Family } from './family.ts';
import { requestOf } from './requests.ts';

const refused = 400;

/** RankGun. Source: www.rankgun.works/docs/developing/APIReference, and APIRefrence for the old addresses, headers and fields. */
export const rankgun: Family = {
  name: 'rankgun',
  secret: (request) =>
    oldHeaders.map((name) => headerText(request.headers[name])).find((secret) => secret !== undefined) ??
    keyIn(request),
  statuses: {
    invalid_key: 403,
    rank_not_allowed: refused,
    member_protected: refused,
    member_suspended: refused,
    ranker_not_allowed: refused,
    above_acting_account: refused,
    member_not_found: refused,
    ambiguous_rank: refused,
    no_further_rank: refused,
  },
  errorFields: ({ message }) => ({ error: message }),
};

const oldHeaders = ['staff-token', 'api-token', 'api_token'];

export function rankgunRoutes(server: FastifyInstance, edge: Edge): void {
  const post = (path: string, read: (body: unknown) => Asked) =>
    server.post(path, { config: { needsKey: true, family: rankgun } }, (request, reply) =>
      answer(edge, { request, reply, operation: path, secret: rankgun.secret, read: () => read(jsonBody(request)) }),
    );
  for (const path of ['/api/roblox/setrank', '/roblox/set-rank']) post(path, asSetRank);
  for (const step of directions)
    for (const path of [`/api/roblox/${step}`, `/roblox/${step}`]) post(path, (body) => ({ ...asStep(body), step }));
}

type Asked = ReturnType<typeof asSetRank>;

/** The member under today's name of the field, or the old one. */
const member = { userId: memberId.nullish(), user_id: memberId.nullish(), reason: optionalText };
const rank = { rankId: id.nullish(), rank: id.nullish() };
const notAnObject = { error: 'The body must be a JSON object' };
const stepBody = z.object(member, notAnObject).refine(hasMember, { error: 'userId is missing' });
const setRankBody = z
  .object({ ...member, ...rank }, notAnObject)
  .refine(hasMember, { error: 'userId is missing' })
  .refine(({ rankId, rank }) => (rankId ?? rank) != null, { error: 'rankId is missing' });

function hasMember({ userId, user_id }: { userId?: number | null | undefined; user_id?: number | null | undefined }) {
  return (userId ?? user_id) != null;
}

function asSetRank(json: unknown) {
  const { userId, user_id, rankId, rank, reason } = parseBody(setRankBody, json);
  return { request: requestOf({ userId: userId ?? user_id ?? 0, newRankId: rankId ?? rank ?? 0, reason }) };
}

function asStep(json: unknown) {
  const { userId, user_id, reason } = parseBody(stepBody, json);
  return { request: requestOf({ userId: userId ?? user_id ?? 0, reason }) };
}

async function answer(edge: Edge, route: ChangeRoute): Promise<FastifyReply> {
  const { change } = await changeFor(edge, route);
  const names = await namesOf(edge.live.current, [change.rankeeId]);
  return route.reply.send(answerOf(change, { request: route.request, name: names.get(change.rankeeId) }));
}

function answerOf(change: RankChange, { request, name }: { request: FastifyRequest; name: string | undefined }) {
  const { before, now } = ranksOf(change);
  return {
    ...{ success: true, oldRank: before?.rank ?? null, newRank: now?.rank ?? null },
    username: name ?? String(change.rankeeId),
    ...{ message: change.message, requestId: request.id, changeId: change.id },
  };
}
