import { invalidArgument } from './answers.ts';

export type MembershipFilter =
  | { kind: 'all' }
  | { kind: 'users'; userIds: number[] }
  | { kind: 'role'; groupId: number; roleId: number };

const maxUsers = 50;

/**
 * Parses a filter for memberships: `user ==`, `role ==` (only within a group) or `user in` (only across all groups, for
 * which the path has `-`).
 */
export function parseFilter(text: string | null, { anyGroup }: { anyGroup: boolean }): MembershipFilter {
  if (text === null || text === '') {
    if (anyGroup) throw invalidArgument('A filter on users is needed to list the memberships of all groups.');
    return { kind: 'all' };
  }
  const [, user] = /^user\s*==\s*'users\/(\d+)'$/.exec(text) ?? [];
  if (user !== undefined) return { kind: 'users', userIds: [Number(user)] };
  const [, groupId, roleId] = /^role\s*==\s*'groups\/(\d+)\/roles\/(\d+)'$/.exec(text) ?? [];
  if (roleId !== undefined && !anyGroup) return { kind: 'role', groupId: Number(groupId), roleId: Number(roleId) };
  const [, users] = /^user\s+in\s+\[\s*('users\/\d+'(?:\s*,\s*'users\/\d+')*)\s*\]$/.exec(text) ?? [];
  if (users !== undefined && anyGroup) return { kind: 'users', userIds: listed(users) };
  throw invalidArgument('The provided filter is invalid.');
}

function listed(users: string): number[] {
  const userIds = [...users.matchAll(/\d+/g)].map(([id]) => Number(id));
  if (userIds.length > maxUsers) throw invalidArgument(`The filter names more than ${maxUsers} users.`);
  return userIds;
}
