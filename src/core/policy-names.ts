import { listRoles } from './describe.ts';
import type { Role } from './model.ts';
import { isRank, type RoleName, rolesCalled } from './role-scheme.ts';
import type { NamingSettings, ResolvedRoles } from './role-settings.ts';
import type { Policy } from './rules/rule.ts';

type RoleRule = 'maxRank' | 'minRank' | 'lockedRoles' | 'privilegedRoles' | 'protectedRoles';

/** The group owner's rules as the configuration states them: they can refer to roles by name. */
export type PolicySettings = Omit<Policy, RoleRule> &
  Pick<NamingSettings, RoleRule> & {
    /** `refuse`: refuses a request whose `oldRankName` names a role that the member does not hold. */
    stale: 'ignore' | 'refuse';
  };

/**
 * Returns the rules with their roles resolved. A bound whose role is gone sets no limit here, because `refusalOfMisfit`
 * refuses the change anyway.
 */
export function policyFor({ named }: Pick<ResolvedRoles, 'named'>, settings: PolicySettings): Policy {
  const ids = (roles: readonly Role[]) => roles.map(({ id }) => id);
  const { maxRank, minRank, privilegedRoles } = settings;
  return {
    ...settings,
    maxRank: isRank(maxRank) ? maxRank : (named['policy.max_rank'][0]?.rank ?? 254),
    minRank: isRank(minRank) ? minRank : (named['policy.min_rank'][0]?.rank ?? 1),
    lockedRoles: ids(named['policy.locked_roles']),
    privilegedRoles: Array.isArray(privilegedRoles) ? ids(named['policy.privileged_roles']) : privilegedRoles,
    protectedRoles: ids(named['policy.protected_roles']),
  };
}

/** Returns a warning for each name in the policy's lists that several roles share: the name then means all of them. */
export function strayNames(
  roles: Role[],
  { lockedRoles, privilegedRoles, protectedRoles }: Pick<NamingSettings, Extract<RoleRule, `${string}Roles`>>,
): string[] {
  const lists: Record<string, RoleName[]> = {
    locked_roles: lockedRoles,
    privileged_roles: Array.isArray(privilegedRoles) ? privilegedRoles : [],
    protected_roles: protectedRoles,
  };
  return Object.entries(lists).flatMap(([setting, names]) =>
    names.flatMap((name) => {
      const called = typeof name === 'string' ? rolesCalled(roles, name) : [];
      if (called.length < 2) return [];
      const all = `it means all of them, ${listRoles(called, ({ id }) => id)}`;
      return `policy.${setting} names "${name}", and ${called.length} roles have that name: ${all}`;
    }),
  );
}
