import type { RankdError } from '../errors.ts';
import type { ActingAccount } from './acting-account.ts';
import type { KeyRules, RankRequest } from './model.ts';
import type { RolePlan, RoleScheme } from './role-plan.ts';
import { cooldown, rankerCooldown } from './rules/cooldowns.ts';
import { direction, steps } from './rules/moves.ts';
import { protectedMembers } from './rules/protected-members.ts';
import { namedRanker, selfRank } from './rules/rankers.ts';
import { ceiling, floor, lockedRoles } from './rules/ranks.ts';

/** The group owner's rules. Roles are named by rank number or role id. */
export interface Policy {
  minRank: number;
  maxRank: number;
  lockedRoles: number[];
  protectedMembers: number[];
  protectedRoles: number[];
  /** `adjacent`: only to the next rank up or down. */
  steps: 'any' | 'adjacent';
  selfRank: 'allow' | 'deny';
  /** `claimed`: the request names another player; `verify`: who also ranks above the rankee, as the platform shows it. */
  rankerCheck: 'off' | 'claimed' | 'verify';
  /** Asked of the ranker with `verify`. */
  minRankerRank: number;
  /** Between two changes of one rankee. */
  cooldownMs: number;
  /** Between two changes by one ranker. */
  rankerCooldownMs: number;
}

/** Everything a rule may look at. */
export interface PolicyCase {
  policy: Policy;
  /** How the key narrows the policy; `undefined`: the operator asks. */
  key: KeyRules | undefined;
  request: RankRequest;
  scheme: RoleScheme;
  plan: RolePlan;
  /** `undefined` where the platform does not say who acts; then it refuses by itself. */
  acting: ActingAccount | undefined;
  /** Milliseconds since the rankee's last applied change; `undefined` where there is none. */
  sinceLastChangeMs: number | undefined;
  /** Milliseconds since the last change that this ranker made; `undefined` where there is none. */
  sinceRankersLastChangeMs: number | undefined;
}

export interface PolicyRule {
  name: string;
  /** The refusal, or `undefined` where the rule has nothing against the change. */
  refusal(of: PolicyCase): RankdError | undefined;
}

/** Every rule that needs no further look at the group, in the order in which they are answered. */
export const policyRules: readonly PolicyRule[] = [
  ceiling,
  floor,
  lockedRoles,
  protectedMembers,
  direction,
  steps,
  selfRank,
  namedRanker,
  cooldown,
  rankerCooldown,
];
