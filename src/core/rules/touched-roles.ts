import type { Role } from '../model.ts';
import type { RolePlan } from '../role-plan.ts';
import type { RoleScheme } from '../role-scheme.ts';

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
