import type { ActingAccount, Role } from '../../core/model.ts';
import type { GroupFacts, ListedRole, MemberRoles } from './group.ts';
import type { ListedMembers } from './members.ts';

/** `acting` and `givable` are null if the platform does not report the acting account. */
export function groupDocument({ group, acting, givable }: GroupFacts) {
  const { id, name, memberCount, ownerId = null } = group;
  return {
    id,
    name,
    memberCount,
    ownerId,
    acting: acting === undefined ? null : actingDocument(acting),
    givable: givable?.map(roleTitleDocument) ?? null,
  };
}

function actingDocument({ userId, name = null, rank, ownerId }: ActingAccount & { name?: string | null }) {
  return { userId, name, rank, isOwner: userId === ownerId };
}

export function roleTitleDocument({ rank, id, name }: Role) {
  return { rank, id, name };
}

/**
 * `onLadder` is null if there is no ladder. If the platform does not report the role's powers, `powers` is null, and so
 * is `privileged`, unless `policy.privileged_roles` names the role.
 */
export function roleDocument({ role: { rank, id, name, kind, powers }, isOnLadder, isPrivileged }: ListedRole) {
  const privileges = { privileged: isPrivileged ?? null, powers: powers ?? null };
  return { rank, id, name, kind, onLadder: isOnLadder ?? null, ...privileges };
}

/** `name` is null if unknown; `next` is null on the last page. */
export function membersDocument({ role, members, next }: ListedMembers) {
  return {
    role: roleTitleDocument(role),
    members: members.map(({ id, name }) => ({ userId: id, name: name || null })),
    next: next ?? null,
  };
}

export function memberDocument({ userId, rank, held }: MemberRoles) {
  return { userId, rank, roles: held.map(({ id, name, rank, kind }) => ({ id, name, rank, kind })) };
}
