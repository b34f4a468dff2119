import { invalidArgument, notFound, permissionDenied } from './answers.ts';
import type { FakeRole, GroupState } from './group-state.ts';

export interface RoleWriteRequest {
  kind: 'assign' | 'unassign';
  groupId: number;
  /** `undefined` if the membership id is invalid. */
  userId: number | undefined;
  /** The body's `role`. */
  rolePath: unknown;
}

/**
 * Returns the member's roles before and after a write, without the base role. Throws if Roblox would refuse the write.
 */
export function decideWrite(
  group: GroupState,
  actorId: number,
  request: RoleWriteRequest,
  { assignReplaces, writesOnlyEcho }: { assignReplaces: boolean; writesOnlyEcho: boolean },
): { userId: number; before: number[]; after: number[] } {
  const role = roleOf(group, request);
  if (role.isBase || role.rank === 0 || role.rank === 255) {
    throw invalidArgument(
      `Cannot ${request.kind} a ${role.isBase ? 'base' : role.rank === 0 ? 'guest' : 'owner'} role.`,
    );
  }
  const { userId } = request;
  const before = userId === undefined ? undefined : writesOnlyEcho ? group.echoed(userId) : group.held(userId);
  if (userId === undefined || before === undefined) throw notFound('The membership was not found.');
  checkPower(group, actorId, { userId, role });
  const others = before.filter((id) => id !== role.id && !(assignReplaces && request.kind === 'assign'));
  return { userId, before, after: request.kind === 'assign' ? [...others, role.id].sort((a, b) => a - b) : others };
}

function roleOf(group: GroupState, { groupId, rolePath }: RoleWriteRequest): FakeRole {
  if (groupId !== group.id) throw notFound('The group was not found.');
  const [, inGroup, roleId] = /^groups\/(\d+)\/roles\/(\d+)$/.exec(typeof rolePath === 'string' ? rolePath : '') ?? [];
  if (roleId === undefined) throw invalidArgument('Failed to parse resource path and its identifiers - 47.');
  const role = Number(inGroup) === group.id ? group.role(Number(roleId)) : undefined;
  if (role === undefined) throw notFound('The role was not found.');
  return role;
}

/**
 * Throws unless the acting account owns the group, or has the permission to change ranks and outranks both the member
 * and the role. No account can change its own roles.
 */
function checkPower(group: GroupState, actorId: number, { userId, role }: { userId: number; role: FakeRole }): void {
  if (userId === actorId) throw permissionDenied('You cannot change your own roles.');
  if (actorId === group.ownerId) return;
  const actorRoles = group.held(actorId) ?? [];
  const mayChange = actorRoles.some((id) => group.role(id)?.changeRank);
  const actorRank = group.highest(actorRoles).rank;
  const memberRank = group.highest(group.held(userId) ?? []).rank;
  if (!mayChange || userId === group.ownerId || memberRank >= actorRank || role.rank >= actorRank) {
    throw permissionDenied('Insufficient permissions.');
  }
}
