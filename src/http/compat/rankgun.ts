import * as z from 'zod';
import { directions } from '../../core/model.ts';
import { namesOf } from '../../usecases/people/users.ts';
import { headerText, keyIn } from '../callers.ts';
import { anonymousRequest, type ChangeRequest, changeFor, ranksOf } from '../changes.ts';
import { id, memberId, notAnObject, optionalText } from '../fields.ts';
import { type Exchange, type Route, route } from '../route.ts';
import type { Family } from './family.ts';

const refused = 400;

/**
 * Sources: www.rankgun.works/docs/developing/APIReference and, for the old addresses, headers and fields, the page
 * APIRefrence (sic) on the same site.
 */
const rankgun: Family = {
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

/** `user_id` is the old name for `userId`. */
const member = { userId: memberId.nullish(), user_id: memberId.nullish(), reason: optionalText };
const rank = { rankId: id.nullish(), rank: id.nullish() };
const stepBody = z.object(member, notAnObject).refine(hasMember, { error: 'userId is missing' });
const setRankBody = z
  .object({ ...member, ...rank }, notAnObject)
  .refine(hasMember, { error: 'userId is missing' })
  .refine(({ rankId, rank }) => (rankId ?? rank) != null, { error: 'rankId is missing' });

function hasMember({ userId, user_id }: { userId?: number | null | undefined; user_id?: number | null | undefined }) {
  return (userId ?? user_id) != null;
}

const change = {
  method: 'POST',
  key: { scope: 'rank', in: rankgun, place: 'query or Roblox-Id' },
  changesRanks: true,
} as const;

export const rankgunRoutes: readonly Route[] = [
  ...['/api/roblox/setrank', '/roblox/set-rank'].map((path) =>
    route({
      ...{ ...change, path },
      body: { description: 'The member and the rank.', schema: setRankBody },
      handler: (exchange) =>
        answer(exchange, () => {
          const { userId, user_id, rankId, rank, reason } = exchange.body();
          const newRankId = rankId ?? rank ?? 0;
          return { request: anonymousRequest({ userId: userId ?? user_id ?? 0, newRankId, reason }) };
        }),
    }),
  ),
  ...directions.flatMap((step) =>
    [`/api/roblox/${step}`, `/roblox/${step}`].map((path) =>
      route({
        ...{ ...change, path },
        body: { description: 'The member.', schema: stepBody },
        handler: (exchange) =>
          answer(exchange, () => {
            const { userId, user_id, reason } = exchange.body();
            return { request: anonymousRequest({ userId: userId ?? user_id ?? 0, reason }), step };
          }),
      }),
    ),
  ),
];

async function answer(exchange: Exchange, read: () => ChangeRequest) {
  const { app, request, route } = exchange;
  const { change } = await changeFor(exchange, route.path, read);
  const names = await namesOf(app, [change.rankeeId]);
  const { before, now } = ranksOf(change);
  return {
    ...{ success: true, oldRank: before?.rank ?? null, newRank: now?.rank ?? null },
    username: names.get(change.rankeeId) ?? String(change.rankeeId),
    ...{ message: change.message, requestId: request.id, changeId: change.id },
  };
}
