import type { RankdError } from '../../base/errors.ts';
import type { ActingAccount, KeyRules, RankRequest } from '../model.ts';
import type { RolePlan, RoleScheme } from '../role-plan.ts';

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
