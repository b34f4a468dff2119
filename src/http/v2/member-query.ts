import * as z from 'zod';
import { isUserName } from '../../core/user-name.ts';
import { memberId, parseBody, text } from '../rank-request.ts';

const nameError = 'must be 3 to 20 letters, digits and underscores: the user name, not the display name';

export const userName = text.refine(isUserName, { error: nameError });

/** How a request on /v2 names its member: by id or by name. */
export const memberFields = {
  robloxUserId: memberId.nullish().describe('User id of the member, above 0.'),
  username: userName.nullish().describe('Instead of `robloxUserId`: the user name that the member has today.'),
};

const memberQuery = z.object(memberFields).superRefine(namesOneMember);

/** The member that a query names. Throws `invalid_request`. */
export function parseMemberQuery(query: unknown): { robloxUserId: number } | { username: string } {
  const { robloxUserId, username } = parseBody(memberQuery, query);
  return robloxUserId == null ? { username: String(username) } : { robloxUserId };
}

export function namesOneMember(
  { robloxUserId, username }: z.output<z.ZodObject<typeof memberFields>>,
  context: z.RefinementCtx,
): void {
  if ((robloxUserId == null) !== (username == null)) return;
  const message =
    robloxUserId == null
      ? 'robloxUserId or username is missing'
      : 'robloxUserId and username are both there; send one of them';
  context.addIssue({ code: 'custom', message });
}
