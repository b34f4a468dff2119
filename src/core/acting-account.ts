import { RankdError } from '../base/errors.ts';
import { roleTitle } from './describe.ts';
import type { ActingAccount, Role } from './model.ts';
import { heldRoles } from './role-scheme.ts';
import type { PolicyCase } from './rules/rule.ts';

export function actingAccount(
  { userId, ownerId }: Pick<ActingAccount, 'userId' | 'ownerId'>,
  held: Role[],
): ActingAccount {
  const rank = Math.max(0, ...held.map((role) => role.rank));
  const given = held.filter(({ kind }) => kind !== 'base').map(({ powers }) => powers?.includes('change ranks'));
  if (userId === ownerId || given.includes(true)) return { userId, ownerId, rank, mayChangeRanks: true };
  const isShown = given.length > 0 && !given.includes(undefined);
  return { userId, ownerId, rank, ...(isShown && { mayChangeRanks: false }) };
}

/**
 * True if the account can give and take this role, or if the account is unknown, because the platform then decides.
 * Roblox lets an account manage only members and roles strictly below its own highest rank; the owner can manage every
 * role. Source: Roblox help on group ranks, and the announcement of several roles per member (March 2026).
 */
export function reaches(acting: ActingAccount | undefined, { rank }: Role): boolean {
  return acting === undefined || acting.userId === acting.ownerId || rank < acting.rank;
}

export function standingWords(acting: ActingAccount): string {
  if (isOutsider(acting)) return 'not a member of the group';
  return acting.userId === acting.ownerId ? 'the owner' : `rank ${acting.rank}`;
}

export function ownerRisk({ userId, ownerId }: ActingAccount): { text: string; fix: string } | undefined {
  if (userId !== ownerId) return undefined;
  return {
    text: "anyone who obtains the owner's Roblox key can do everything in the group",
    fix: 'create an account only for rankd, give it a role just above the ranks that it changes, and create the Roblox key with that account',
  };
}

export function isOutsider({ userId, ownerId, rank }: ActingAccount): boolean {
  return rank === 0 && userId !== ownerId;
}

/**
 * Returns the refusal if the rankee is the group's owner or the acting account. Roblox rejects every such change, so
 * rankd does not send it.
 */
export function refusalOfUntouchable(rankeeId: number, acting: ActingAccount | undefined): RankdError | undefined {
  if (rankeeId === acting?.ownerId) return refusalOfOwner(rankeeId);
  if (rankeeId !== acting?.userId) return undefined;
  return untouchable(`Member ${rankeeId} is the acting account; on Roblox, no one can change their own rank.`);
}

function refusalOfOwner(rankeeId: number): RankdError {
  return untouchable(`Member ${rankeeId} owns the group; an owner's rank can't be changed.`);
}

/**
 * Returns the refusal for a member who has the owner's rank but may not be the owner: in a group that Roblox has
 * migrated to its new roles, other members can have that rank, too.
 */
export function refusalOfOwnersRank(rankeeId: number, role: Role): RankdError {
  return untouchable(
    `Member ${rankeeId} holds ${roleTitle(role)}, and a member with the owner's rank can't be changed.`,
  );
}

/** Returns the refusal if the acting account can't manage the new role or one of the member's roles. */
export function refusalAboveActing({ acting, request, scheme, plan }: PolicyCase): RankdError | undefined {
  const held = heldRoles(scheme.roles, { userId: request.rankeeId, roleIds: plan.goal.from });
  const involved = [...held, plan.target].find((role) => !reaches(acting, role));
  if (acting === undefined || involved === undefined) return undefined;
  if (isOutsider(acting)) return refusalOfOutsider(acting);
  const what =
    involved === plan.target ? roleTitle(involved) : `Member ${request.rankeeId} holds ${roleTitle(involved)}, which`;
  return aboveActing(`${what} is not below the acting account's rank ${acting.rank} (user ${acting.userId}).`);
}

export function refusalOfOutsider({ userId }: ActingAccount): RankdError {
  const message =
    `The acting account (user ${userId}) is not a member of the group. ` +
    'It must join the group and hold a role above the ranks that rankd changes.';
  return new RankdError('above_acting_account', message, {
    hint: `join the group as user ${userId}, give that account the role, then try again`,
  });
}

function untouchable(message: string): RankdError {
  return new RankdError('above_acting_account', message, {
    hint: 'choose a different member; no role would let the acting account change this member',
  });
}

function aboveActing(message: string): RankdError {
  return new RankdError('above_acting_account', message, {
    hint: 'give the acting account a higher role in the group; `rankd group show` shows which account that is',
  });
}
