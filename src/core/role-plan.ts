import { RankdError } from '../base/errors.ts';
import { shorten } from '../base/shorten.ts';
import type { Member, RankChange, Role } from './model.ts';
import { type Goal, type Step, steps } from './steps.ts';

/** How a member gets to the target, and what must hold afterwards. */
export interface RolePlan {
  target: Role;
  goal: Goal;
  /** None where the member is there already. */
  steps: Step[];
  /** The highest rank (within the ladder, where there is one) before and after. */
  rankBefore: number;
  rankAfter: number;
}

/** The roles of a group, ascending by rank, and those of them that form its promotion ladder (`undefined`: none is configured). */
export interface RoleScheme {
  roles: Role[];
  ladder: Role[] | undefined;
}

/**
 * Plans how a member comes to hold `target` as highest role.
 *
 * With a ladder, exactly the target remains of its roles and all others stay untouched. Without one, the roles at the
 * member's highest rank and those above the target go, and lower extra roles stay. The base role is implicit: it is
 * never written, and reaching it means taking the others away.
 */
export function rolePlan(scheme: RoleScheme, member: Member, target: Role): RolePlan {
  const before = heldRoles(scheme.roles, member);
  const managed = before.filter((role) => isManaged(scheme, role));
  const leaving = superseded(scheme, managed, target);
  const after = [...before.filter((role) => !leaving.includes(role) && role.id !== target.id), target];
  const goal = { from: roleIds(before), to: roleIds(after) };
  return {
    target,
    goal,
    steps: steps(goal),
    rankBefore: highestRank(scheme, before),
    rankAfter: highestRank(scheme, after),
  };
}

/** True where the member goes down, or to another role of the same rank, which may be one that allows less. */
export function takesAway({ goal, target, rankBefore, rankAfter }: RolePlan): boolean {
  return rankAfter < rankBefore || (rankAfter === rankBefore && !goal.from.includes(target.id));
}

/**
 * Plans how a member comes to hold exactly these roles (ids) again, those that the group still has. The target is the
 * highest of them that changing a rank may give.
 */
export function restorePlan(scheme: RoleScheme, member: Member, wanted: number[]): RolePlan {
  const before = heldRoles(scheme.roles, member);
  const after = heldRoles(scheme.roles, { ...member, roleIds: wanted });
  const rankAfter = highestRank(scheme, after);
  const target = after.find((role) => role.rank === rankAfter && isCounted(scheme, role));
  if (target === undefined) throw new RankdError('unknown_rank', 'The group lists no role that every member has.');
  const goal = { from: roleIds(before), to: roleIds(after) };
  return { target, goal, steps: steps(goal), rankBefore: highestRank(scheme, before), rankAfter };
}

/** True where a member is seen to hold what the change was for: an undo means exactly its roles, any other the rank. */
export function isReached(
  scheme: RoleScheme,
  { roleId, rolesAfter, undoOf }: Pick<RankChange, 'roleId' | 'rolesAfter' | 'undoOf'>,
  member: Member,
): boolean {
  if (undoOf !== undefined) return roleIds(heldRoles(scheme.roles, member)).join() === rolesAfter.join();
  const target = scheme.roles.find((role) => role.id === roleId);
  return target !== undefined && rolePlan(scheme, member, target).steps.length === 0;
}

/** The roles a member holds, the implicit base role included. Roles the group no longer lists are left out. */
export function heldRoles(roles: Role[], member: Member): Role[] {
  return roles.filter((role) => role.kind === 'base' || (role.kind !== 'guest' && member.roleIds.includes(role.id)));
}

/** The member's highest rank: over all roles, or within the ladder, whose implicit bottom is the base role. */
export function highestRank(scheme: RoleScheme, held: Role[]): number {
  return Math.max(0, ...held.filter((role) => isCounted(scheme, role)).map((role) => role.rank));
}

/**
 * The role that `newRankId` means: a rank number up to 255, a role id above.
 * Throws `unknown_rank`, `ambiguous_rank`, or `rank_not_allowed` for guest, owner and roles off the ladder.
 */
export function resolveTarget(scheme: RoleScheme, newRankId: number): Role {
  const named = scheme.roles.filter((role) => (newRankId > 255 ? role.id : role.rank) === newRankId);
  if (named.length === 0) {
    const ranks = listRoles(givableRoles(scheme));
    throw new RankdError('unknown_rank', `The group has no rank ${newRankId}. Its ranks are ${ranks}.`);
  }
  const [target, ...others] = named.filter((role) => isCounted(scheme, role));
  if (target === undefined) throw notGivable(scheme, named);
  if (others.length > 0) {
    const ids = listed([target, ...others].map((role) => `${role.id} (${shorten(role.name, 32)})`));
    throw new RankdError(
      'ambiguous_rank',
      `More than one role has rank ${newRankId}. Send the role id instead: ${ids}.`,
    );
  }
  return target;
}

/** How a request can name this role: by its rank, or by its id where others share the rank. */
export function nameForRequest({ roles }: Pick<RoleScheme, 'roles'>, { id, rank }: Role): number {
  return roles.every((role) => role.rank !== rank || role.id === id) ? rank : id;
}

function notGivable(scheme: RoleScheme, named: Role[]): RankdError {
  const special = named.find((role) => role.kind === 'guest' || role.kind === 'owner');
  const why =
    special === undefined
      ? 'is not on the promotion ladder in group.ladder'
      : `is the ${special.kind} role, which can never be given`;
  const what = `"${shorten(named[0]?.name ?? '', 32)}" ${why}`;
  return new RankdError('rank_not_allowed', `${what}. Choose one of ${listRoles(givableRoles(scheme))}.`);
}

/**
 * The roles that the configured ladder (ranks or role ids) names, ascending by rank; the base role is implicit and left out.
 * Throws `config_invalid` for an entry that names no role, two roles, guest or owner, and for two entries of one rank.
 */
export function resolveLadder(roles: Role[], ladder: number[]): Role[] {
  const named = new Set(ladder.map((entry) => ladderRole(roles, entry)));
  const isRung = (role: Role) => role.kind === 'base' || named.has(role);
  const rungs = roles.filter(isRung);
  const clash = rungs.find((role, index) => role.rank === rungs[index + 1]?.rank);
  if (clash !== undefined) {
    throw ladderError(
      `two of its roles share rank ${clash.rank}, so neither is above the other; the base role counts as one of them`,
    );
  }
  return rungs.filter((role) => role.kind !== 'base');
}

function ladderRole(roles: Role[], entry: number): Role {
  const [role, other] = roles.filter((role) => (entry > 255 ? role.id : role.rank) === entry);
  if (role === undefined) throw ladderError(`${entry} is not a rank or role id of the group`);
  if (other !== undefined)
    throw ladderError(`rank ${entry} is shared by role ${role.id} and role ${other.id}; name the role id`);
  if (role.kind === 'guest' || role.kind === 'owner')
    throw ladderError(`${entry} is the ${role.kind} role, which can never be given`);
  return role;
}

function ladderError(what: string): RankdError {
  return new RankdError('config_invalid', `group.ladder does not fit the group: ${what}.`, {
    hint: 'correct group.ladder in rankd.yaml; `rankd group roles` lists ranks and role ids',
  });
}

/** The roles of `managed` that the target takes the place of. */
function superseded(scheme: RoleScheme, managed: Role[], target: Role): Role[] {
  const others = managed.filter((role) => role.id !== target.id);
  if (scheme.ladder !== undefined || target.kind === 'base') return others;
  const highest = Math.max(0, ...managed.map((role) => role.rank));
  const isHeld = others.length < managed.length;
  return others.filter((role) => role.rank > target.rank || (role.rank === highest && !isHeld));
}

/** True for the roles that a member's rank is told by: the base role, and those that changing a rank may give or take. */
export function isCounted(scheme: RoleScheme, role: Role): boolean {
  return role.kind === 'base' || isManaged(scheme, role);
}

/** True for the roles that changing a rank may give or take. */
function isManaged({ ladder }: RoleScheme, role: Role): boolean {
  return ladder === undefined ? role.kind === 'custom' : ladder.some((step) => step.id === role.id);
}

/** The roles that a change may end with, ascending by rank. */
export function givableRoles(scheme: RoleScheme): Role[] {
  return scheme.roles.filter((role) => isCounted(scheme, role));
}

/** e.g. `1 (Member), 10 (Officer)`. */
export function listRoles(roles: Role[]): string {
  return listed(roles.map((role) => `${role.rank} (${shorten(role.name, 32)})`));
}

/** As many items as an answer has room for (in bytes of UTF-8), and how many more there are. */
function listed(items: string[], maxBytes = 900): string {
  let bytes = 0;
  const shown = items.filter((item) => {
    bytes += Buffer.byteLength(item) + 2;
    return bytes <= maxBytes;
  });
  const more = items.length - shown.length;
  return shown.join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** Ascending. */
export function roleIds(roles: Role[]): number[] {
  return roles.map((role) => role.id).sort((a, b) => a - b);
}
