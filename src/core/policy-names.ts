import { RankdError } from '../base/errors.ts';
import { listRoles } from './list-roles.ts';
import type { Role } from './model.ts';
import { type RoleName, rolesCalled } from './role-name.ts';
import type { Policy } from './rules/rule.ts';
import { isNamed } from './rules/touched-roles.ts';

/** The group owner's rules as they were written: lists of roles may have names in them. */
export interface PolicySettings extends Omit<Policy, 'lockedRoles' | 'privilegedRoles' | 'protectedRoles'> {
  lockedRoles: RoleName[];
  privilegedRoles: 'allow' | 'operator' | RoleName[];
  protectedRoles: RoleName[];
}

/**
 * The rules for a group with these roles. A name means every role that has it, so that no list guards less than it seems to. A name that
 * no role has would guard nothing, and nobody would notice: `onMisfit` is told of it, and throws `config_invalid` unless it is given.
 */
export function policyFor(
  roles: Role[],
  settings: PolicySettings,
  onMisfit: (misfit: RankdError) => void = refuse,
): Policy {
  const numbers = (setting: string, names: RoleName[]) =>
    names.flatMap((name) => {
      if (typeof name === 'number') return name;
      const called = rolesCalled(roles, name);
      if (called.length === 0) onMisfit(misfitOf(setting, name));
      return called.map(({ id }) => id);
    });
  const { lockedRoles, privilegedRoles, protectedRoles } = settings;
  return {
    ...settings,
    lockedRoles: numbers('locked_roles', lockedRoles),
    privilegedRoles: Array.isArray(privilegedRoles) ? numbers('privileged_roles', privilegedRoles) : privilegedRoles,
    protectedRoles: numbers('protected_roles', protectedRoles),
  };
}

function refuse(misfit: RankdError): never {
  throw misfit;
}

function misfitOf(setting: string, name: string): RankdError {
  return new RankdError(
    'config_invalid',
    `policy.${setting} does not fit the group: no role of the group is called "${name}".`,
    { hint: `correct policy.${setting} in rankd.yaml; \`rankd group roles\` lists the roles` },
  );
}

/** A sentence for each entry of the policy's lists that an operator should look at. A typo there silently disables the protection. */
export function strayNames(roles: Role[], { lockedRoles, privilegedRoles, protectedRoles }: PolicySettings): string[] {
  const lists = {
    locked_roles: lockedRoles,
    privileged_roles: Array.isArray(privilegedRoles) ? privilegedRoles : [],
    protected_roles: protectedRoles,
  };
  return Object.entries(lists).flatMap(([setting, names]) =>
    names.flatMap((name) => {
      const what = strayName(roles, name);
      return what === undefined ? [] : `policy.${setting} names ${what}`;
    }),
  );
}

function strayName(roles: Role[], name: RoleName): string | undefined {
  if (typeof name === 'number')
    return roles.some((role) => isNamed(role, [name]))
      ? undefined
      : `${name}, which is no rank or role id of the group`;
  const called = rolesCalled(roles, name);
  if (called.length < 2) return undefined; // `policyFor` refuses a name that no role has
  return `"${name}", and ${called.length} roles are called so: all of them are meant, ${listRoles(called, ({ id }) => id)}`;
}
