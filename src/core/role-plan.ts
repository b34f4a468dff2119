import { RankdError } from '../base/errors.ts';
import type { Member, RankChange, Role, RoleChangeKind } from './model.ts';
import {
  heightOf,
  heldIds,
  heldRoles,
  highestRole,
  isManaged,
  isUnclear,
  isUnlisted,
  type RoleScheme,
  roleIds,
  undecided,
} from './role-scheme.ts';
import { type Goal, type Step, steps } from './steps.ts';

export interface RolePlan {
  target: Role;
  goal: Goal;
  /** Empty if the change needs no write. */
  steps: Step[];
  /** The highest role before the change that counts for the rank. */
  highestBefore: Role | undefined;
  /** Set if the target is an extra role, which the change gives or takes without changing the rank. */
  kind?: RoleChangeKind;
}

/**
 * Plans the steps that make `target` a member's highest role.
 *
 * With a ladder, the target replaces all other roles on the ladder; roles off the ladder stay. Without a ladder, the
 * target replaces the roles above it and, if it is new to the member, those at the member's highest rank; lower roles
 * stay. Every member has the base role, so rankd never gives or takes it: a member reaches it by losing the other
 * roles.
 */
export function rolePlan(scheme: RoleScheme, member: Member, target: Role): RolePlan {
  const before = heldRoles(scheme.roles, member);
  const managed = before.filter((role) => isManaged(scheme, role));
  const leaving = superseded(scheme, managed, target);
  const after = [...before.filter((role) => !leaving.includes(role) && role.id !== target.id), target];
  return planFrom(scheme, member, { after, target });
}

/** Plans like `rolePlan`, but does not change a member who already has this rank or a higher one. */
export function planAtLeast(scheme: RoleScheme, member: Member, target: Role): RolePlan {
  const before = heldRoles(scheme.roles, member);
  const highest = highestRole(scheme, before);
  const isReached = highest !== undefined && heightOf(highest) >= heightOf(target);
  return isReached ? planFrom(scheme, member, { after: before, target: highest }) : rolePlan(scheme, member, target);
}

function superseded(scheme: RoleScheme, managed: Role[], target: Role): Role[] {
  const others = managed.filter((role) => role.id !== target.id);
  if (scheme.ladder !== undefined || target.kind === 'base') return others;
  const highest = Math.max(0, ...managed.map((role) => role.rank));
  const isHeld = others.length < managed.length;
  return others.filter((role) => role.rank > target.rank || (role.rank === highest && !isHeld));
}

/** Plans to give or take one extra role. All other roles and the rank stay the same. */
export function planAlongside(scheme: RoleScheme, member: Member, target: Role, kind: RoleChangeKind): RolePlan {
  const others = heldRoles(scheme.roles, member).filter(({ id }) => id !== target.id);
  return { ...planFrom(scheme, member, { after: kind === 'role_added' ? [...others, target] : others, target }), kind };
}

/**
 * Plans to restore exactly these roles (ids), except those that the group no longer has or that its list omits. The
 * target is the highest of them that counts for the rank. Throws `unknown_rank` if none does.
 */
export function restorePlan(scheme: RoleScheme, member: Member, wanted: number[]): RolePlan {
  const after = heldRoles(scheme.roles, { ...member, roleIds: wanted });
  const target = highestRole(scheme, after);
  if (target === undefined) throw new RankdError('unknown_rank', 'The group lists no role that every member has.');
  return planFrom(scheme, member, { after, target });
}

/**
 * Plans a suspension: takes all custom roles and gives the target, whether or not it is on the ladder. The base role
 * stays.
 */
export function suspensionPlan(scheme: RoleScheme, member: Member, target: Role): RolePlan {
  const after = heldRoles(scheme.roles, { ...member, roleIds: [target.id] });
  return planFrom(scheme, member, { after, target });
}

/**
 * Plans the steps to the roles `after`. Roles that the group's list omits stay as they are. Throws
 * `platform_unavailable` if the plan depends on which role is the base role.
 */
function planFrom(scheme: RoleScheme, member: Member, { after, target }: { after: Role[]; target: Role }): RolePlan {
  const { roles } = scheme;
  const from = heldIds(roles, member);
  const listed = roleIds(after).filter((id) => !isUnlisted(roles, id));
  const goal = { from, to: heldIds(roles, { roleIds: [...listed, ...from.filter((id) => isUnlisted(roles, id))] }) };
  const plan = { target, goal, steps: steps(goal), highestBefore: highestRole(scheme, heldRoles(roles, member)) };
  const unclear = scheme.roles.filter(isUnclear);
  if (plan.steps.some(({ roleId }) => unclear.some(({ id }) => id === roleId))) throw undecided();
  return plan;
}

/** True if the member loses roles without rising. */
export function takesAway(plan: RolePlan): boolean {
  return rise(plan) <= 0 && plan.steps.some(({ kind }) => kind === 'unassign');
}

/**
 * Returns a positive number if the member rises or gains an extra role, and a negative one if the member falls or loses
 * an extra role.
 */
export function rise({ target, highestBefore, kind }: RolePlan): number {
  if (kind !== undefined) return kind === 'role_added' ? 1 : -1;
  return heightOf(target) - heightOf(highestBefore);
}

/**
 * True if the member's roles meet the change's goal. After an undo, a suspension, a return or a renewal, they must be
 * exactly the planned roles; for any other change, the role or rank is enough.
 */
export function isReached(
  scheme: RoleScheme,
  change: Pick<RankChange, 'kind' | 'roleId' | 'rolesAfter' | 'undoOf' | 'hold'>,
  member: Member,
): boolean {
  const { kind, roleId, rolesAfter } = change;
  const { roles } = scheme;
  const heldWith = (ids: number[]) =>
    heldIds(roles, { roleIds: ids })
      .filter((id) => !isUnlisted(roles, id))
      .join();
  // `heldWith` adds the base role to both sides, because it may have been unknown when the change was planned.
  if (isExact(change)) return heldWith(member.roleIds) === heldWith(rolesAfter);
  if (kind !== undefined) return member.roleIds.some((id) => id === roleId) === (kind === 'role_added');
  const target = scheme.roles.find((role) => role.id === roleId);
  return target !== undefined && rolePlan(scheme, member, target).steps.length === 0;
}

/** True if the change's goal is an exact set of roles, rather than a rank that allows other roles. */
function isExact({ undoOf, hold }: Pick<RankChange, 'undoOf' | 'hold'>): boolean {
  if (undoOf !== undefined) return true;
  if (hold?.does === 'begin') return hold.kind === 'suspension';
  return hold?.does === 'return' || hold?.does === 'renew';
}
