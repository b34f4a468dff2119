import type { Role } from '../model.ts';
import type { RolePlan } from '../role-plan.ts';
import type { RoleScheme } from '../role-scheme.ts';
import type { Policy } from './rule.ts';

/** The roles that the change gives or takes away, and its target even if it need not be given. */
export function touchedRoles({ roles }: RoleScheme, plan: RolePlan): Role[] {
  return roles.filter((role) => role.id === plan.target.id || plan.steps.some((step) => step.roleId === role.id));
}

/** True if the list of ranks and role ids names the role. A rank names every role that has it, so that no list guards less than it seems to. */
export function isNamed(role: Role, list: number[]): boolean {
  return list.includes(role.id) || list.includes(role.rank);
}

/** A sentence for each entry of the policy that names no role of the group: a typo there silently disables the protection. */
export function strayNames(
  roles: Role[],
  { lockedRoles, privilegedRoles, protectedRoles }: Pick<Policy, 'lockedRoles' | 'privilegedRoles' | 'protectedRoles'>,
): string[] {
  const lists = {
    locked_roles: lockedRoles,
    privileged_roles: Array.isArray(privilegedRoles) ? privilegedRoles : [],
    protected_roles: protectedRoles,
  };
  return Object.entries(lists).flatMap(([setting, names]) =>
    names
      .filter((name) => !roles.some((role) => isNamed(role, [name])))
      .map((name) => `policy.${setting} names ${name}, which is no rank or role id of the group`),
  );
}
