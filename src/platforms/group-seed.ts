import type { Member, Role, RoleKind } from '../core/model.ts';
import { rolesNamed } from '../core/role-scheme.ts';
import type { GroupDescription } from './group-description.ts';
import type { GroupSeed } from './simulated-group.ts';

/** Collects a problem at a path in the description; the caller reports all problems together. */
export type ReportProblem = (path: Array<string | number>, what: string) => void;

/**
 * Converts a group description to a seed. Fills in missing role ids (10000 + rank) and any missing role that every
 * group has: guest (rank 0), base (rank 1) and, if there is an owner, owner (rank 255). The base role is the one marked
 * `base`, or else the one with rank 1. The result is valid only if no problem was reported.
 */
export function toSeed(group: GroupDescription, reportProblem: ReportProblem): GroupSeed {
  const roles = completeRoles(group, reportProblem);
  const members = toMembers(group, roles, reportProblem);
  if (!members.some((member) => member.userId === group.acting_account)) {
    reportProblem(['acting_account'], `must be one of the members or the owner; ${group.acting_account} is neither`);
  }
  return {
    id: group.id,
    name: group.name,
    ...(group.owner !== undefined && { ownerId: group.owner }),
    actingUserId: group.acting_account,
    roles,
    members,
    users: group.members.flatMap(({ id, name }) => (name === undefined ? [] : [{ id, name }])),
  };
}

function completeRoles(group: GroupDescription, reportProblem: ReportProblem): Role[] {
  const base = baseOf(group, reportProblem);
  const roles = group.roles.map((role, index): Role => {
    const kind: RoleKind = index === base ? 'base' : role.rank === 0 ? 'guest' : role.rank === 255 ? 'owner' : 'custom';
    return { id: role.id ?? idFor(role.rank), name: role.name, rank: role.rank, kind };
  });
  for (const [index, role] of roles.entries()) {
    const twin = roles.findIndex((other) => other.id === role.id);
    if (twin < index)
      reportProblem(
        ['roles', index],
        `has the same id as roles[${twin}], ${role.id}; roles that share a rank need different ids`,
      );
    const sameKind = roles.findIndex((other) => other.kind === role.kind);
    if (role.kind !== 'custom' && sameKind < index) {
      reportProblem(['roles', index, 'rank'], `makes this a second ${role.kind} role; a group has one`);
    }
  }
  return [...missingRoles(group, roles), ...roles];
}

/** Returns the index of the base role in the list, or -1 if the list omits it. */
function baseOf({ roles }: GroupDescription, reportProblem: ReportProblem): number {
  const marked = roles.flatMap((role, index) => (role.base === true ? [index] : []));
  for (const index of marked.slice(1))
    reportProblem(['roles', index, 'base'], 'marks a second base role; a group has one');
  const [base] = marked;
  if (base === undefined) {
    const first = roles.flatMap((role, index) => (role.rank === 1 && role.base !== false ? [index] : []));
    for (const index of first.slice(1))
      reportProblem(['roles', index, 'rank'], 'is 1 for two roles: mark one of them with `base: true`');
    return first[0] ?? -1;
  }
  const { rank = 0 } = roles[base] ?? {};
  const lower = roles.findIndex((role) => role.rank > 0 && role.rank < rank);
  if (rank === 0 || rank === 255)
    reportProblem(
      ['roles', base, 'base'],
      `cannot mark rank ${rank}, which belongs to the ${rank === 0 ? 'guest' : 'owner'} role`,
    );
  else if (lower >= 0)
    reportProblem(
      ['roles', base, 'base'],
      `cannot mark rank ${rank}: the role that every member holds is the lowest, and roles[${lower}] is below it`,
    );
  return base;
}

function missingRoles(group: GroupDescription, roles: Role[]): Role[] {
  const isTaken = roles.some(({ id }) => id === idFor(1)); // e.g. by a custom role with rank 1
  const standardRoles: Role[] = [
    { id: idFor(0), name: 'Guest', rank: 0, kind: 'guest' },
    { id: idFor(isTaken ? 256 : 1), name: 'Member', rank: 1, kind: 'base' },
    { id: idFor(255), name: 'Owner', rank: 255, kind: 'owner' },
  ];
  return standardRoles.filter(
    ({ kind }) => !roles.some((role) => role.kind === kind) && (kind !== 'owner' || group.owner !== undefined),
  );
}

function toMembers(group: GroupDescription, roles: Role[], reportProblem: ReportProblem): Member[] {
  const members = group.members.map(({ id, roles: named }, index): Member => {
    const twin = group.members.findIndex((other) => other.id === id);
    if (twin < index) reportProblem(['members', index, 'id'], `is the same as the id of members[${twin}], ${id}`);
    const roleIds = named.flatMap((entry, position) => {
      const found = heldRole(roles, entry, id === group.owner);
      if (typeof found === 'number') return [found];
      reportProblem(['members', index, 'roles', position], found);
      return [];
    });
    return { userId: id, roleIds };
  });
  return withOwner(group, roles, members);
}

/** Returns the id of the role that `entry` names, or else the problem to report. */
function heldRole(roles: Role[], entry: number, isOwner: boolean): number | string {
  const [role, other] = rolesNamed({ roles, rankOne: 'custom' }, entry);
  if (role === undefined) return `is ${entry}, but the group has no such rank or role id`;
  if (other !== undefined) return `names rank ${entry}, which two roles share; use a role id`;
  if (role.kind === 'guest') return 'names the guest role, which no member holds';
  if (role.kind === 'owner' && !isOwner) return "names the owner's role; set `owner` instead";
  return role.id;
}

function withOwner({ owner }: GroupDescription, roles: Role[], members: Member[]): Member[] {
  if (owner === undefined) return members;
  const ownerRoleIds = roles.filter((role) => role.kind === 'owner').map((role) => role.id);
  const others = members.filter((member) => member.userId !== owner);
  const listed = members.find((member) => member.userId === owner)?.roleIds ?? [];
  return [...others, { userId: owner, roleIds: [...new Set([...listed, ...ownerRoleIds])] }];
}

/**
 * Derives the id from the rank, so that it stays the same when other roles are added or moved, and is above 255, the
 * highest rank.
 */
function idFor(rank: number): number {
  return 10_000 + rank;
}
