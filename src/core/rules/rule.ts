import type { RankdError } from '../../base/errors.ts';
import type { ActingAccount, KeyRules, RankRequest, Role } from '../model.ts';
import type { RolePlan } from '../role-plan.ts';
import type { RoleScheme } from '../role-scheme.ts';

/** The group owner's rules. Numbers up to 255 in a list of roles are ranks; the others are role ids. */
export interface Policy {
  minRank: number;
  maxRank: number;
  lockedRoles: number[];
  privilegedRoles: PrivilegedRoles;
  protectedMembers: number[];
  protectedRoles: number[];
  /** `adjacent`: a change can move a member only to the next rank up or down. */
  steps: 'any' | 'adjacent';
  /** `required`: callers with a key must give a reason. */
  reason: 'optional' | 'required';
  selfRank: 'allow' | 'deny';
  /**
   * `claimed`: the request must name a player other than the rankee. `verify`: that player must also rank above the
   * rankee and all roles that the change touches.
   */
  rankerCheck: 'off' | 'claimed' | 'verify';
  /** The minimum rank of a ranker if `rankerCheck` is `verify`. */
  minRankerRank: number;
  /** The minimum time between two changes to the same rankee, depending on the rankee's rank. */
  cooldowns: readonly Cooldown[];
  rankerCooldownMs: number;
}

/** An entry applies to members with rank `from` and above, up to the next entry. */
export interface Cooldown {
  from: number;
  forMs: number;
}

/**
 * The callers that are allowed to give and take privileged roles. `allow`: all callers. `operator`: the operator, and
 * keys with `isPrivileged`. A list works like `operator`, and also makes the listed ranks and role ids privileged,
 * whatever the platform reports.
 */
export type PrivilegedRoles = 'allow' | 'operator' | number[];

export interface PolicyCase {
  policy: Policy;
  /** The key's own rules; `undefined` for the operator. */
  key: KeyRules | undefined;
  request: RankRequest;
  scheme: RoleScheme;
  plan: RolePlan;
  /** A second plan that the rules must allow; see `earlyReturnOf`. */
  earlyReturn?: RolePlan | undefined;
  /**
   * `undefined` if the platform does not report it; the platform itself then refuses changes beyond the account's
   * reach.
   */
  acting: ActingAccount | undefined;
  /**
   * Milliseconds since the rankee's last applied change; `undefined` if there is none, or if no rule needs the time.
   */
  sinceLastChangeMs: number | undefined;
  /**
   * Milliseconds since the ranker's last change to any member; `undefined` if there is none, or if no rule needs the
   * time.
   */
  sinceRankersLastChangeMs: number | undefined;
}

export interface PolicyRule {
  name: string;
  refusal(of: PolicyCase): RankdError | undefined;
}

/** Returns the roles that the change gives or takes, and its target even if the member already has it. */
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
