import { RankdError } from '../../base/errors.ts';
import { reaches } from '../../core/acting-account.ts';
import type { ActingAccount, Group, KeyRules, Role } from '../../core/model.ts';
import { policyFor } from '../../core/policy-names.ts';
import { alongsideRoles, givableRoles, heldRoles, highestRole } from '../../core/role-scheme.ts';
import { isPrivileged, isReserved, isWithinBounds } from '../../core/rules/ranks.ts';
import { isNamed } from '../../core/rules/rule.ts';
import type { CallContext } from '../../ports/index.ts';
import type { Ranking } from '../change/ranking.ts';
import { userNameIfKnown } from '../people/users.ts';

export interface GroupFacts {
  group: Group;
  /** `undefined` if the platform does not report it. In that case, the roles that it can give are also unknown. */
  acting: (ActingAccount & { name?: string }) | undefined;
  /** The roles within the account's reach that the policy allows, in ascending order of rank. */
  givable: Role[] | undefined;
}

export async function showGroup(
  { platform, group, policy }: Pick<Ranking, 'platform' | 'group' | 'policy'>,
  call: CallContext,
): Promise<GroupFacts> {
  const { acting, givable } = await findGivable({ group, policy }, undefined, call);
  if (acting === undefined) return { group: await platform.group(call), acting, givable: undefined };
  const name = await userNameIfKnown({ platform }, acting.userId, call);
  return { group: await platform.group(call), acting: { ...acting, ...(name !== undefined && { name }) }, givable };
}

/**
 * Returns all roles, in ascending order of rank, and those that the key (or the operator, without a key) can give: as a
 * rank (`givable`) or in addition to it (`alongside`).
 */
export async function findGivable(
  { group, policy }: Pick<Ranking, 'group' | 'policy'>,
  key: KeyRules | undefined,
  call: CallContext,
): Promise<{ acting: ActingAccount | undefined; roles: Role[]; givable: Role[]; alongside: Role[] }> {
  const acting = await group.acting(call);
  const scheme = await group.scheme(call);
  const rules = policyFor(scheme, policy);
  const bounds = { policy: rules, key, scheme };
  const isAllowed = (role: Role) =>
    acting?.mayChangeRanks !== false &&
    reaches(acting, role) &&
    isWithinBounds(role, bounds) &&
    !isNamed(role, rules.lockedRoles) &&
    !isReserved(role, bounds);
  const [givable, alongside] = [givableRoles(scheme).filter(isAllowed), alongsideRoles(scheme).filter(isAllowed)];
  return { acting, roles: scheme.roles, givable, alongside };
}

export interface ListedRole {
  role: Role;
  /** `undefined` if there is no ladder. */
  isOnLadder: boolean | undefined;
  /** `undefined` if neither the platform nor `policy.privileged_roles` determines it. */
  isPrivileged: boolean | undefined;
}

/**
 * Lists the group's roles in ascending order of rank. If several roles have the owner's rank, reports those that the
 * owner does not hold as custom.
 */
export async function listGroupRoles(
  { platform, group, policy }: Pick<Ranking, 'platform' | 'group' | 'policy'>,
  call: CallContext,
): Promise<ListedRole[]> {
  const scheme = await group.scheme(call);
  const rungs = scheme.ladder === undefined ? undefined : givableRoles(scheme);
  const { privilegedRoles } = policyFor(scheme, policy);
  const isShared = scheme.roles.filter(({ kind }) => kind === 'owner').length > 1;
  const ownerId = isShared ? await group.owner(call) : undefined;
  const owner = ownerId === undefined ? undefined : await platform.getMember(ownerId, call);
  const isNotHeldByOwner = ({ id, kind }: Role) => kind === 'owner' && owner?.roleIds.includes(id) === false;
  return scheme.roles.map((role) => ({
    role: isNotHeldByOwner(role) ? { ...role, kind: 'custom' } : role,
    isOnLadder: rungs?.includes(role),
    isPrivileged: isPrivileged(role, privilegedRoles) || (role.powers === undefined ? undefined : false),
  }));
}

export interface MemberRoles {
  userId: number;
  /**
   * The member's highest rank, or 0 if there is none. With a ladder, only the base role and the ladder's roles count.
   */
  rank: number;
  highest: Role | undefined;
  /** In ascending order of rank. */
  held: Role[];
}

/** Like `findMemberRoles`, but throws `member_not_found`. */
export async function showMember(
  app: Pick<Ranking, 'platform' | 'group'>,
  userId: number,
  call: CallContext,
): Promise<MemberRoles> {
  const found = await findMemberRoles(app, userId, call);
  if (found !== undefined) return found;
  throw new RankdError('member_not_found', `User ${userId} is not a member of the group.`, {
    hint: 'check the user id',
  });
}

/** Returns `undefined` if the user is not a member. */
export async function findMemberRoles(
  { platform, group }: Pick<Ranking, 'platform' | 'group'>,
  userId: number,
  call: CallContext,
): Promise<MemberRoles | undefined> {
  const member = await platform.getMember(userId, call);
  if (member === undefined) return undefined;
  const scheme = await group.schemeFor(member, call);
  const held = heldRoles(scheme.roles, member);
  const highest = highestRole(scheme, held);
  return { userId, rank: highest?.rank ?? 0, highest, held };
}
