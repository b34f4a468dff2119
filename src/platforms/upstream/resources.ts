import type { Credential, Group, Member, NamedUser, Place, Power, Role } from '../../core/model.ts';
import type { Page } from '../../ports/index.ts';

/**
 * The platform's resources as sent over the wire: in Open Cloud v2, ids are strings and references are paths. Each
 * parser throws if a required field is missing or if an id or a reference is malformed, and ignores unknown fields.
 */

export interface ListedRole {
  id: number;
  name: string;
  rank: number;
  /**
   * Reported only to keys with group:read. The group's owner sees the powers of every role; other users see only those
   * of their own roles. Source: `permissions` of GroupRole in the Open Cloud reference.
   */
  powers?: Power[];
}

/**
 * Parses a GetGroup response. `owner` is missing if the group has no owner. The name and the member count can be
 * missing too, because rankd only displays them.
 */
export function parseGroup(json: unknown): Group {
  const group = record(json);
  const { displayName, owner, locked } = group;
  const groupId = id(group['id']);
  const memberCount = Number(group['memberCount']);
  return {
    id: groupId,
    name: typeof displayName === 'string' ? displayName : `Group ${groupId}`,
    memberCount: Number.isSafeInteger(memberCount) ? memberCount : 0,
    ...(isUnset(owner) ? {} : { ownerId: idIn(owner, 'users') }),
    ...(locked === true && { isLocked: true }),
  };
}

export function parseRolePage(json: unknown): Page<ListedRole> {
  return parsePage(json, 'groupRoles', parseRole);
}

/** JSON generated from protobuf can omit a rank of 0, which the guest role has. */
export function parseRole(json: unknown): ListedRole {
  const { id: roleId, displayName, rank = 0, permissions } = record(json);
  return {
    id: id(roleId),
    name: text(displayName),
    rank: whole(rank),
    ...(!isUnset(permissions) && { powers: powersIn(record(permissions)) }),
  };
}

/**
 * The power that each role permission grants. Permissions that are not listed grant no power over members or the
 * group's property.
 */
const powerOf: Readonly<Record<string, Power>> = {
  changeRank: 'change ranks',
  acceptRequests: 'accept members',
  exileMembers: 'remove members',
  banMembers: 'remove members',
  manageRelationships: 'manage the group',
  spendGroupFunds: 'manage the group',
  manageGroupUniverses: 'manage the group',
  createApiKeys: 'manage the group',
  manageApiKeys: 'manage the group',
};

function powersIn(permissions: Record<string, unknown>): Power[] {
  return [...new Set(Object.entries(powerOf).flatMap(([name, power]) => (permissions[name] === true ? [power] : [])))];
}

/**
 * Adds each role's kind, which Open Cloud does not report. `baseIds` contains the id of the base role, or the ids of
 * all candidates for it. Sorts the roles by rank, then by id; the base role comes first within its rank.
 */
export function withKinds(listed: ListedRole[], baseIds: number[]): Role[] {
  const roles = listed.map((role): Role => {
    if (baseIds.includes(role.id)) return { ...role, kind: baseIds.length === 1 ? 'base' : 'unclear' };
    return { ...role, kind: role.rank === 0 ? 'guest' : role.rank === 255 ? 'owner' : 'custom' };
  });
  const isOther = ({ kind }: Role) => Number(kind !== 'base');
  return roles.sort((a, b) => a.rank - b.rank || isOther(a) - isOther(b) || a.id - b.id);
}

export interface Membership {
  userId: number;
  /** The id of the highest role; absent if the response does not name it. */
  role: number | undefined;
  /** All role ids, possibly without the base role's. The field did not exist before March 2026. */
  roles: number[] | undefined;
  joinedAt: number | undefined;
}

export function parseMembershipPage(json: unknown): Page<Membership> {
  return parsePage(json, 'groupMemberships', parseMembership);
}

export function parseMembership(json: unknown): Membership {
  const { user, role, roles, createTime } = record(json);
  const joinedAt = typeof createTime === 'string' ? Date.parse(createTime) : Number.NaN;
  return {
    userId: idIn(user, 'users'),
    role: isUnset(role) ? undefined : idIn(role, 'roles'),
    roles: isUnset(roles) ? undefined : list(roles).map((path) => idIn(path, 'roles')),
    joinedAt: Number.isFinite(joinedAt) ? joinedAt : undefined,
  };
}

/** Combines `roles` and `role`, because `roles` is empty for a member who holds only the base role. */
export function memberOf({ userId, role, roles = [], joinedAt }: Membership): Member {
  const roleIds = new Set(role === undefined ? roles : [...roles, role]);
  return { userId, roleIds: [...roleIds].sort((a, b) => a - b), ...(joinedAt !== undefined && { joinedAt }) };
}

/**
 * Returns the base role's id from the legacy role list, the only list that marks it, or `undefined` if none is marked.
 */
export function parseBaseRoleId(json: unknown): number | undefined {
  const base = list(record(json)['roles'])
    .map(record)
    .find((role) => role['isBase'] === true);
  return base && id(base['id']);
}

/**
 * Parses a usernames/users response, which has no equivalent in Open Cloud. `asked` is the requested name, which can be
 * a former name; `name` is the current one. Source: the OpenAPI document of users.roblox.com.
 */
export function parseNamedUsers(json: unknown): Array<NamedUser & { asked: string }> {
  return list(record(json)['data'])
    .map(record)
    .map((user) => ({ asked: text(user['requestedUsername']), id: id(user['id']), name: text(user['name']) }));
}

/** Source: the OpenAPI document of develop.roblox.com. */
export function parsePlacePage(json: unknown): Page<Place> {
  const { data, nextPageCursor } = record(json);
  const items = list(data)
    .map(record)
    .map((place) => ({ id: id(place['id']), name: text(place['name']) }));
  return { items, next: isUnset(nextPageCursor) ? undefined : text(nextPageCursor) };
}

export function parseUserName(json: unknown): string {
  return text(record(json)['name']);
}

/**
 * Parses an API key's introspection response. An expiration time in the year 1 means that the key does not expire.
 * `canWrite` is absent if the scopes do not show whether the key can write.
 */
export function parseCredential(json: unknown, groupId: number): Credential {
  const { enabled, expired, authorizedUserId, expirationTimeUtc, scopes } = record(json);
  const expiresAt = typeof expirationTimeUtc === 'string' ? Date.parse(expirationTimeUtc) : Number.NaN;
  const canWrite = Array.isArray(scopes) ? mayWrite(scopes.map(Object), groupId) : undefined;
  return {
    state: enabled === false ? 'disabled' : expired === true ? 'expired' : 'valid',
    ...(isUnset(authorizedUserId) ? {} : { userId: id(authorizedUserId) }),
    ...(canWrite === undefined ? {} : { canWrite }),
    ...(expiresAt > 0 && { expiresAt }),
  };
}

/** True if a scope allows writes to the group; `undefined` if that is unclear. `operations` can be null (observed). */
function mayWrite(scopes: Record<string, unknown>[], groupId: number): boolean | undefined {
  const answers = scopes
    .filter(({ name }) => name === 'group' || name === 'group:write')
    .map(({ name, operations, groupIds }) => {
      const isOfGroup = Array.isArray(groupIds)
        ? groupIds.some((id) => id === '*' || String(id) === String(groupId))
        : undefined;
      if (name === 'group:write') return isOfGroup;
      if (!Array.isArray(operations)) return undefined;
      return operations.includes('write') ? isOfGroup : false;
    });
  if (answers.includes(true)) return true;
  return answers.includes(undefined) ? undefined : false;
}

/**
 * Parses a page, which can be empty: Roblox has been observed to return `"groupMemberships": []` for a user who is not
 * in the group.
 */
function parsePage<T>(json: unknown, field: string, parseItem: (item: unknown) => T): Page<T> {
  const { [field]: items, nextPageToken } = record(json);
  return {
    items: list(items).map(parseItem),
    next: typeof nextPageToken === 'string' && nextPageToken !== '' ? nextPageToken : undefined,
  };
}

/** True if a field has no value: JSON generated from protobuf omits the field, or contains null or an empty string. */
function isUnset(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

/** Returns the id that follows `collection` in a path, e.g. 7 from `groups/1/roles/7`. */
function idIn(path: unknown, collection: string): number {
  const [, found] = new RegExp(`(?:^|/)${collection}/(\\d+)$`).exec(text(path)) ?? [];
  if (found === undefined) throw new TypeError(`no id under ${collection}`);
  return id(found);
}

function id(value: unknown): number {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  if (!Number.isSafeInteger(number)) throw new TypeError('an id is not a whole number');
  return number as number;
}

function whole(value: unknown): number {
  if (!Number.isSafeInteger(value)) throw new TypeError('a number is missing or not whole');
  return value as number;
}

function text(value: unknown): string {
  if (typeof value !== 'string') throw new TypeError('a text is missing');
  return value;
}

function list(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new TypeError('a list is missing');
  return value;
}

function record(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError('an object is missing');
  return value as Record<string, unknown>;
}
