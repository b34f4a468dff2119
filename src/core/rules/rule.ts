import type { RankdError } from '../../base/errors.ts';
import type { ActingAccount, KeyRules, RankRequest, Role } from '../model.ts';
import type { RolePlan } from '../role-plan.ts';
import type { RoleScheme } from '../role-scheme.ts';

/** The group owner's rules. Roles are given by rank number or role id. */
export interface Policy {
  minRank: number;
  maxRank: number;
  lockedRoles: number[];
  privilegedRoles: PrivilegedRoles;
  protectedMembers: number[];
  protectedRoles: number[];
  /** `adjacent`: only to the next rank up or down. */
  steps: 'any' | 'adjacent';
  /** `required`: callers with a key must give a reason. */
  reason: 'optional' | 'required';
  selfRank: 'allow' | 'deny';
  /** `claimed`: the request must name another player. `verify`: that player must also rank above the rankee on the platform. */
  rankerCheck: 'off' | 'claimed' | 'verify';
  /** The lowest rank that a ranker must have with `verify`. */
  minRankerRank: number;
  /** The least time between two changes of one rankee, by the rankee's rank before; see `cooldownMsAt`. */
  cooldowns: readonly Cooldown[];
  /** The least time between two changes by one ranker. */
  rankerCooldownMs: number;
}

/** Applies to members of rank `from` and above, up to the next entry. */
export interface Cooldown {
  from: number;
  forMs: number;
}

/**
 * The callers that may give and take privileged roles. `allow`: the same as for other roles. `operator`: the operator,
 * and games whose key is made for it. A list works like `operator`, and names roles (ranks or role ids) that are
 * privileged whatever the platform shows.
 */
export type PrivilegedRoles = 'allow' | 'operator' | number[];

/** The facts for the rules. */
export interface PolicyCase {
  policy: Policy;
  /** The key's limits beyond the policy's; `undefined` for the operator. */
  key: KeyRules | undefined;
  request: RankRequest;
  scheme: RoleScheme;
  plan: RolePlan;
  /** The plan by which roles return early because of a key's suspension; it has to pass the rules as well. */
  comeback?: RolePlan | undefined;
  /** `undefined` if the platform does not report it. The platform itself then refuses changes that the account may not make. */
  acting: ActingAccount | undefined;
  /** Milliseconds since the rankee's last applied change; `undefined` if there is none. */
  sinceLastChangeMs: number | undefined;
  /** Milliseconds since the last change that this ranker made; `undefined` if there is none. */
  sinceRankersLastChangeMs: number | undefined;
}

export interface PolicyRule {
  name: string;
  /** The refusal; `undefined` if the rule allows the change. */
  refusal(of: PolicyCase): RankdError | undefined;
}

/** The roles that the change gives or takes, and its target even if the member already has it. */
export function touchedRoles({ roles }: RoleScheme, plan: RolePlan): Role[] {
  return roles.filter((role) => role.id === plan.target.id || plan.steps.some((step) => step.roleId === role.id));
}

/**
 * True if the list of ranks and role ids includes the role. A rank includes every role that has it, so that no list
 * protects less than it seems to.
 */
export function isNamed(role: Role, list: number[]): boolean {
  return list.includes(role.id) || list.includes(role.rank);
}
