import type { ActingAccount, Role } from '../../core/model.ts';
import type { GroupFacts, ListedRole, MemberRoles } from '../group/group.ts';

/** The group, who rankd acts as there and which roles that account can give; null if the platform does not say who acts. */
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

/** A role as far as people tell one from another. */
export function roleTitleDocument({ rank, id, name }: Role) {
  return { rank, id, name };
}

/** A role of the group; `onLadder` is null if there is no ladder, `privileged` and `powers` if the platform does not tell. */
export function roleDocument({ role: { rank, id, name, kind, powers }, isOnLadder, isPrivileged }: ListedRole) {
  const privileges = { privileged: isPrivileged ?? null, powers: powers ?? null };
  return { rank, id, name, kind, onLadder: isOnLadder ?? null, ...privileges };
}

/** A member with the roles held, ascending by rank. */
export function memberDocument({ userId, rank, held }: MemberRoles) {
  return { userId, rank, roles: held.map(({ id, name, rank, kind }) => ({ id, name, rank, kind })) };
}
