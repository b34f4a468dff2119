import { RankdError } from '../../base/errors.ts';
import { roleTitle } from '../describe.ts';
import type { Role } from '../model.ts';
import type { PolicyCase, PolicyRule, PrivilegedRoles } from './rule.ts';
import { isNamed, touchedRoles } from './touched-roles.ts';

/**
 * The thief of a key must not be able to gain roles that can change ranks or admit members. The operator has no key.
 */
export const privilegedRoles: PolicyRule = {
  name: 'privileged roles',
  refusal({ policy, key, scheme, plan }) {
    const privileged = touchedRoles(scheme, plan).find((role) => isKeptBack(role, { policy, key }));
    if (privileged === undefined) return undefined;
    return new RankdError(
      'rank_not_allowed',
      `${roleTitle(privileged)} is a privileged role${mayWords(privileged)}; policy.privileged_roles leaves such roles to the operator.`,
      { hint: 'use the command line, or let this key do it: rankd key set KEY --privileged' },
    );
  },
};

/** True if the role is left to the operator. */
export function isKeptBack(role: Role, { policy, key }: Pick<PolicyCase, 'policy' | 'key'>): boolean {
  if (policy.privilegedRoles === 'allow' || key === undefined || key.isPrivileged === true) return false;
  return isPrivileged(role, policy.privilegedRoles);
}

function mayWords({ powers = [] }: Role): string {
  return powers.length === 0 ? '' : ` (it may ${powers.join(', ')})`;
}

/** True if the role has power over other members or over the group, as far as that is known. */
export function isPrivileged(role: Role, setting: PrivilegedRoles): boolean {
  return (role.powers ?? []).length > 0 || (Array.isArray(setting) && isNamed(role, setting));
}

/** The privileged custom roles, and those for which neither the platform nor the setting shows whether they are. */
export function privilegesAmong(roles: Role[], setting: PrivilegedRoles): { privileged: Role[]; untold: Role[] } {
  const custom = roles.filter(({ kind }) => kind === 'custom');
  const privileged = custom.filter((role) => isPrivileged(role, setting));
  const untold = custom.filter((role) => role.powers === undefined && !privileged.includes(role));
  return { privileged, untold };
}
