import { RankdError } from '../base/errors.ts';
import { reaches } from './acting-account.ts';
import { roleTitle } from './describe.ts';
import type { ActingAccount, Role } from './model.ts';
import { type RoleName, rolesMeant } from './role-name.ts';
import { isUnclear, type RoleScheme, undecided } from './role-scheme.ts';
import { isNamed } from './rules/touched-roles.ts';

/**
 * The role of suspended members: the requested one, or only the base role. Throws `unknown_rank`, `ambiguous_name` if
 * several roles match, and `platform_unavailable` if the base role is unclear.
 */
export function suspendedRole(scheme: RoleScheme, asked: RoleName | undefined): Role {
  const named = asked === undefined ? scheme.roles : rolesMeant(scheme, asked);
  if (named.some(isUnclear)) throw undecided();
  const [role, ...others] = named.filter(({ kind }) => kind === 'base' || (asked !== undefined && kind === 'custom'));
  const hint =
    'correct policy.suspension.role in rankd.yaml, or name the role with --role; `rankd group roles` lists them';
  if (role === undefined)
    throw new RankdError(
      'unknown_rank',
      `The group has no role ${asked ?? 'that every member has'} for suspended members.`,
      { hint },
    );
  if (others.length === 0) return role;
  throw new RankdError('ambiguous_name', `More than one role is ${asked}, which suspended members are to hold.`, {
    hint,
  });
}

/** The reason that members can't be suspended with the role of the setting; `undefined` if they can. */
export function flawOfSuspendedRole(
  role: Role,
  { lockedRoles, acting }: { lockedRoles: number[]; acting: ActingAccount | undefined },
): string | undefined {
  if (isNamed(role, lockedRoles))
    return `policy.suspension.role is ${roleTitle(role)}, which policy.locked_roles names`;
  if (reaches(acting, role)) return undefined;
  return `policy.suspension.role is ${roleTitle(role)}, which is not below the acting account`;
}
