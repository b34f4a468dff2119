import type { Role } from '../model.ts';
import type { RolePlan, RoleScheme } from '../role-plan.ts';

/** The roles that the change gives or takes, and its target also where nothing needs giving. */
export function touchedRoles({ roles }: RoleScheme, plan: RolePlan): Role[] {
  return roles.filter((role) => role.id === plan.target.id || plan.steps.some((step) => step.roleId === role.id));
}

/** True where the list of ranks and role ids names the role. */
export function isNamed(role: Role, list: number[]): boolean {
  return list.includes(role.id) || list.includes(role.rank);
}
