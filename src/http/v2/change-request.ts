import * as z from 'zod';
import type { RankRequest } from '../../core/model.ts';
import type { RoleName } from '../../core/role-name.ts';
import { userId } from '../ids.ts';
import { optionalText, parseBody, present, text } from '../rank-request.ts';
import { memberFields, namesOneMember } from './member-query.ts';

const rankError = ({ input }: { input?: unknown }) =>
  input === undefined ? 'is missing' : 'must be a rank number, a role id or the name of a role';
export const notAnObject = { error: 'The body must be a JSON object' };

/** The fields of every change on /v2. The member is named by id or by name. */
export const fields = {
  ...memberFields,
  reason: optionalText.describe('Why, in your own words; 200 characters of it are kept with the change.'),
  rankerId: userId.nullish().describe('User id of the player who asks; 0, or left out: not a player.'),
  rankerName: optionalText.describe('Name of the player who asks.'),
  rankeeName: optionalText.describe('Name of the member whose rank is to change, for the history and the answer.'),
  command: optionalText.describe('The command that led to the change; kept with it.'),
};

const rank = z
  .union([z.int({ error: rankError }).min(0, { error: rankError }), text.min(1, { error: rankError })], {
    error: rankError,
  })
  .describe('The rank number in the group (1 to 255), a role id (above 255), or the name of a role.');

/** The body of POST /v2/promote, /v2/demote and /v2/unsuspend. Unknown fields are ignored. */
export const stepBody = z.object(fields, notAnObject).superRefine(namesOneMember);

/** The body of POST /v2/rank. Unknown fields are ignored. */
export const setRankBody = z.object({ ...fields, rank }, notAnObject).superRefine(namesOneMember);

/** What a body asks for. Its member is known by name alone if there is a `username`: `rankeeId` is 0 then. */
export interface Asked {
  request: RankRequest;
  username: string | undefined;
  /** Instead of the `newRankId` of the request. */
  roleName?: string;
}

export function parseStep(json: unknown): Asked {
  return toAsked(parseBody(stepBody, json), 0);
}

export function parseSetRank(json: unknown): Asked {
  const { rank, ...body } = parseBody(setRankBody, json);
  return toAsked(body, asRoleName(rank));
}

export function toAsked(body: z.output<typeof stepBody>, rank: RoleName): Asked {
  const { robloxUserId, username, rankerId, rankerName, rankeeName, reason, command } = body;
  const request = present({
    rankeeId: robloxUserId ?? 0,
    rankeeName: rankeeName ?? '',
    rankerId: rankerId ?? 0,
    rankerName: rankerName ?? '',
    newRankId: typeof rank === 'number' ? rank : 0,
    command,
    reason,
  });
  return { request, username: username ?? undefined, ...(typeof rank === 'string' && { roleName: rank }) };
}

/** Digits are a number, as everywhere where a rank is named. */
export function asRoleName(rank: number | string): RoleName {
  return /^\d{1,16}$/.test(String(rank)) ? Number(rank) : rank;
}
