import type { Role } from '../model.ts';
import type { RolePlan, RoleScheme } from '../role-plan.ts';
import type { Policy } from './rule.ts';

/** The roles that the change gives or takes, and its target also where nothing needs giving. */
export function touchedRoles({ roles }: RoleScheme, plan: RolePlan): Role[] {
  return roles.filter((role) => role.id === plan.target.id || plan.steps.some((step) => step.roleId === role.id));
}

/** True where the list of ranks and role ids names the role. */
export function isNamed(role: Role, list: number[]): boolean {
  return list.includes(role.id) || list.includes(role.rank);
}

/** What the policy names that is no role of the group, in words: a slip there leaves unguarded what was to be guarded. */
export function strayNames(roles: Role[], { lockedRoles, protectedRoles }: Policy): string[] {
  return Object.entries({ locked_roles: lockedRoles, protected_roles: protectedRoles }).flatMap(([setting, names]) =>
    names
      .filter((name) => !roles.some((role) => isNamed(role, [name])))
      .map((name) => `policy.${setting} names ${name}, which is no rank or role id of the group`),
  );
}
