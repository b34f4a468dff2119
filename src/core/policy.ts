import { RankdError } from '../errors.ts';
import { roleTitle } from './describe.ts';
import type { RankRequest, Role } from './model.ts';
import { heldRoles, type RolePlan, type RoleScheme } from './role-plan.ts';

/** The group owner's rules. Roles are named by rank number or role id. */
export interface Policy {
  maxRank: number;
  lockedRoles: number[];
  protectedMembers: number[];
  protectedRoles: number[];
  selfRank: 'allow' | 'deny';
  cooldownMs: number;
}

/** The account that rankd acts as, and how far it reaches. */
export interface ActingAccount {
  userId: number;
  /** The group's owner, where it has one. */
  ownerId: number | undefined;
  /** Its highest rank over all roles; it reaches only what is strictly below. */
  rank: number;
}

/** Everything a rule may look at. */
export interface PolicyCase {
  policy: Policy;
  /** The key's own ceiling. */
  keyMaxRank: number | undefined;
  request: RankRequest;
  scheme: RoleScheme;
  plan: RolePlan;
  /** `undefined` where the platform does not say who acts; then it refuses by itself. */
  acting: ActingAccount | undefined;
  /** Milliseconds since the rankee's last applied change; `undefined` where there is none. */
  sinceLastChangeMs: number | undefined;
}

export interface PolicyRule {
  name: string;
  /** The refusal, or `undefined` where the rule has nothing against the change. */
  refusal(of: PolicyCase): RankdError | undefined;
}

/** Every rule, in the order in which they are answered. */
export const policyRules: readonly PolicyRule[] = [
  {
    name: 'ceiling',
    refusal({ policy, keyMaxRank = 255, scheme, plan }) {
      const ceiling = Math.min(policy.maxRank, keyMaxRank);
      const above = touchedRoles(scheme, plan).find((role) => role.rank > ceiling);
      if (above === undefined) return undefined;
      const setting = keyMaxRank < policy.maxRank ? 'the max_rank of this key' : 'policy.max_rank';
      return new RankdError(
        'rank_not_allowed',
        `${roleTitle(above)} is above ${ceiling}, the ceiling set by ${setting}.`,
        {
          hint:
            keyMaxRank < policy.maxRank ? 'use a key with a higher --max-rank' : 'raise policy.max_rank in rankd.yaml',
        },
      );
    },
  },
  {
    name: 'locked roles',
    refusal({ policy, scheme, plan }) {
      const locked = touchedRoles(scheme, plan).find((role) => names(policy.lockedRoles, role));
      if (locked === undefined) return undefined;
      return new RankdError(
        'rank_not_allowed',
        `${roleTitle(locked)} is locked by policy.locked_roles: it is never given or taken.`,
        {
          hint: 'take it out of policy.locked_roles in rankd.yaml',
        },
      );
    },
  },
  {
    name: 'protected members',
    refusal({ policy, request, scheme, plan }) {
      const held = heldRoles(scheme.roles, { userId: request.rankeeId, roleIds: plan.goal.from });
      const role = held.find((candidate) => names(policy.protectedRoles, candidate));
      const byName = policy.protectedMembers.includes(request.rankeeId);
      if (!byName && role === undefined) return undefined;
      const why =
        role === undefined || byName
          ? 'is on policy.protected_members'
          : `holds ${roleTitle(role)}, one of policy.protected_roles`;
      return new RankdError('member_protected', `Member ${request.rankeeId} ${why} and can't be ranked.`, {
        hint: 'change policy.protected_members or policy.protected_roles in rankd.yaml',
      });
    },
  },
  {
    name: 'self-rank',
    refusal({ policy, request }) {
      if (policy.selfRank === 'allow' || request.rankerId !== request.rankeeId) return undefined;
      return new RankdError(
        'ranker_not_allowed',
        'Members may not change their own rank here: policy.self_rank is deny.',
        {
          hint: 'set policy.self_rank to allow in rankd.yaml',
        },
      );
    },
  },
  {
    name: 'cooldown',
    refusal({ policy, request, sinceLastChangeMs = Number.POSITIVE_INFINITY }) {
      // Negative: the clock was set back. Then the cooldown counts as over rather than lasting for hours.
      if (sinceLastChangeMs < 0 || sinceLastChangeMs >= policy.cooldownMs) return undefined;
      const retryAfterMs = policy.cooldownMs - sinceLastChangeMs;
      return new RankdError(
        'cooldown',
        `Member ${request.rankeeId} was ranked a moment ago (policy.cooldown); try again in ${Math.ceil(retryAfterMs / 1000)} seconds.`,
        { retryAfterMs, hint: 'wait, or lower policy.cooldown in rankd.yaml' },
      );
    },
  },
];

/** The owner and the acting account are never ranked: nobody can, and it needs no call to know. */
export function refusalOfUntouchable(rankeeId: number, acting: ActingAccount | undefined): RankdError | undefined {
  if (rankeeId === acting?.ownerId) return refusalOfOwner(rankeeId);
  if (rankeeId !== acting?.userId) return undefined;
  return aboveActing(`Member ${rankeeId} is the account rankd acts with; Roblox lets nobody change their own rank.`);
}

/** Of who turns out to hold the owner's role, where the platform did not say who owns the group. */
export function refusalOfOwner(rankeeId: number): RankdError {
  return aboveActing(`Member ${rankeeId} owns the group; an owner's rank can't be changed.`);
}

/**
 * Roblox lets an account manage only members and roles strictly below its own highest rank; the owner reaches every role.
 * Source: Roblox help on group ranks, and the announcement of several roles per member (March 2026).
 */
export function refusalAboveActing({ acting, request, scheme, plan }: PolicyCase): RankdError | undefined {
  if (acting === undefined || acting.userId === acting.ownerId) return undefined;
  const held = heldRoles(scheme.roles, { userId: request.rankeeId, roleIds: plan.goal.from });
  const involved = [...held, plan.target].find((role) => role.rank >= acting.rank);
  if (involved === undefined) return undefined;
  const what =
    involved === plan.target ? `${roleTitle(involved)} is` : `Member ${request.rankeeId} holds ${roleTitle(involved)},`;
  return aboveActing(`${what} not below rank ${acting.rank} of the account rankd acts with (${acting.userId}).`);
}

function aboveActing(message: string): RankdError {
  return new RankdError('above_acting_account', message, {
    hint: 'give the acting account a higher role in the group; `rankd group show` tells which account that is',
  });
}

function touchedRoles({ roles }: RoleScheme, plan: RolePlan): Role[] {
  return roles.filter((role) => role.id === plan.target.id || plan.steps.some((step) => step.roleId === role.id));
}

function names(list: number[], role: Role): boolean {
  return list.includes(role.id) || list.includes(role.rank);
}
