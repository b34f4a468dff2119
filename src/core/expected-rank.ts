import { RankdError } from '../base/errors.ts';
import { memberTitle, roleTitle } from './describe.ts';
import type { Member, RankRequest, Role } from './model.ts';
import { type RoleName, rolesCalled, rolesRequested } from './role-name.ts';
import { heldRoles, highestRole, type RoleScheme } from './role-scheme.ts';
import { unknownRank } from './target.ts';

/** The rank that a request expects the member to have. */
export interface ExpectedRank {
  /** The member's rank has to be this one. */
  ifRank?: RoleName | undefined;
  /** The rank as the game knew it, if the policy compares it: a name of no role is ignored. */
  oldRankName?: string | undefined;
}

/** The refusal of a change that expects another rank than the member has. Throws `unknown_rank` if no role has the expected one. */
export function refusalOfOtherRank(
  { scheme, member }: { scheme: RoleScheme; member: Member },
  { ifRank, oldRankName }: ExpectedRank,
  request: RankRequest,
): RankdError | undefined {
  const held = heldRoles(scheme.roles, member);
  const highest = highestRole(scheme, held);
  if (ifRank !== undefined && !isRankOf(scheme, highest, ifRank)) return differs(request, highest, `${ifRank}`);
  const named = oldRankName === undefined ? [] : rolesCalled(scheme.roles, oldRankName);
  const isStale = named.length > 0 && !named.some((role) => held.includes(role));
  return isStale ? differs(request, highest, `${oldRankName}`) : undefined;
}

function isRankOf(scheme: RoleScheme, highest: Role | undefined, expected: RoleName): boolean {
  const roles = rolesRequested(scheme, expected);
  if (roles.length === 0 && expected !== 0) throw unknownRank(scheme, expected);
  if (typeof expected === 'number' && expected <= 255) return (highest?.rank ?? 0) === expected;
  return highest !== undefined && roles.includes(highest);
}

function differs(request: RankRequest, found: Role | undefined, expected: string): RankdError {
  const rank = found === undefined ? 'has no rank' : `is ${roleTitle(found)}`;
  return new RankdError('rank_differs', `${memberTitle(request)} ${rank}, not ${expected}. Nothing was changed.`);
}
