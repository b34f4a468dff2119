import type { FakeRole, GroupState } from './group-state.ts';

/** Times with 3 and with 9 fractional digits, because Open Cloud sends both. */
const createTime = '2020-03-29T18:15:20.100Z';
const updateTime = '2024-05-12T13:17:41.639132600Z';

/** The content of a membership's `roles`. The field did not exist before March 2026. */
export type RolesField = 'withoutBase' | 'withBase' | 'absent';

export function groupResource(group: GroupState): unknown {
  return {
    path: `groups/${group.id}`,
    createTime,
    updateTime,
    id: String(group.id),
    displayName: group.name,
    description: '',
    owner: group.ownerId === undefined ? undefined : `users/${group.ownerId}`,
    memberCount: group.userIds.length,
    publicEntryAllowed: true,
    locked: group.locked,
    verified: false,
  };
}

/** Returns a role as the acting account sees it. The guest role has no member count. */
export function roleResource(group: GroupState, role: FakeRole, actorId: number): unknown {
  const isOwner = actorId === group.ownerId;
  const showsPermissions = role.rank === 0 || isOwner || group.held(actorId)?.includes(role.id);
  return {
    path: `groups/${group.id}/roles/${role.id}`,
    ...(isOwner ? { createTime, updateTime, description: '' } : {}),
    id: String(role.id),
    displayName: role.name,
    rank: role.rank,
    ...(role.rank === 0 ? {} : { memberCount: memberCount(group, role) }),
    ...(showsPermissions ? { permissions: permissionsOf(role) } : {}),
  };
}

function permissionsOf({ changeRank = false, acceptRequests = false }: FakeRole) {
  return { viewWallPosts: true, changeRank, acceptRequests };
}

export function membershipResource(
  group: GroupState,
  userId: number,
  roleIds: number[],
  rolesField: RolesField,
): unknown {
  const path = (id: number) => `groups/${group.id}/roles/${id}`;
  const listed = rolesField === 'withBase' ? [group.base.id, ...roleIds] : roleIds;
  return {
    path: `groups/${group.id}/memberships/${membershipId(userId)}`,
    createTime: rfc3339(group.joinedAt(userId), userId),
    updateTime,
    user: `users/${userId}`,
    role: path(group.highest(roleIds).id),
    ...(rolesField === 'absent' ? {} : { roles: listed.map(path) }),
  };
}

/** Formats a time with 3 or 9 fractional digits, or with none for a whole second. */
function rfc3339(at: number, userId: number): string {
  const text = new Date(at).toISOString();
  if (at % 1_000 === 0) return text.replace('.000Z', 'Z');
  return userId % 2 === 0 ? text : text.replace('Z', '000000Z');
}

/** Returns the legacy list, in which ids are numbers and a flag marks the base role. */
export function publicRoleList(group: GroupState): unknown {
  const roles = group.roles.map((role) => ({
    id: role.id,
    name: role.name,
    description: '',
    rank: role.rank,
    memberCount: role.rank === 0 ? 0 : memberCount(group, role),
    isBase: role.isBase ?? false,
    color: 0,
  }));
  return { groupId: group.id, roles: roles.sort((a, b) => a.rank - b.rank) };
}

function membershipId(userId: number): string {
  return Buffer.from(String(userId)).toString('base64url');
}

/** Parses a membership id or a plain user id. Returns `undefined` for anything else. */
export function userOf(membership: string): number | undefined {
  const decimal = /^\d+$/.test(membership) ? membership : Buffer.from(membership, 'base64url').toString();
  return /^\d+$/.test(decimal) ? Number(decimal) : undefined;
}

function memberCount(group: GroupState, role: FakeRole): number {
  return group.userIds.filter((userId) => role.isBase || group.held(userId)?.includes(role.id)).length;
}
