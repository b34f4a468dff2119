import {
  type FakeAnswer,
  gatewayError,
  invalidArgument,
  json,
  notFound,
  permissionDenied,
  v2Error,
} from './answers.ts';
import type { Budgets } from './budgets.ts';
import { authenticate, type FakeCredential, hasScope, insufficientScope, introspect } from './credential.ts';
import { parseFilter } from './filter.ts';
import type { FakeRole, GroupState } from './group-state.ts';
import type { Journal, JournalEntry } from './journal.ts';
import { pageOf } from './paging.ts';
import { groupResource, membershipResource, publicRoleList, type RolesField, roleResource } from './resources.ts';
import { decideWrite } from './role-writes.ts';
import type { FakeRequest } from './routes.ts';
import type { FakeUser } from './sample.ts';

/** The fake's state. A test can change any field at any time. */
export interface World {
  group: GroupState;
  credential: FakeCredential;
  budgets: Budgets;
  journal: Journal;
  now(): number;
  /** The time until reads of memberships show a write. The response to the write shows it immediately. */
  lagMs: number;
  /**
   * Stale roles: `list` for the list of roles, `alone` for reads of a single role. Without them, the fake returns the
   * current roles.
   */
  rolesBehind: { list?: FakeRole[]; alone?: FakeRole[] };
  rolesField: RolesField;
  /** If true, a write with a key that lacks `group:write` gets a 200 without effect, instead of a 403. */
  acceptsWritesWithoutScope: boolean;
  /** If true, writes have no effect, but get the same responses as if they had one. */
  writesOnlyEcho: boolean;
  /** True if assigning a role removes all others. */
  assignReplaces: boolean;
  /** If set, a write within `ms` of the member's previous change is refused. */
  membershipLock: { ms: number; status: number; text: string } | undefined;
  writeAnswer: 'membership' | 'empty object' | 'no content';
  addedFields: Record<string, unknown>;
  removedFields: string[];
  /** True if the last page has an empty `nextPageToken`; false if it omits the field. */
  endsWithEmptyToken: boolean;
  /** True if the last page's token leads back to the first page. */
  pagesRepeat: boolean;
  /** False if the legacy list of roles is unavailable (503). */
  hasPublicRoles: boolean;
  /** The state of the group's migration to unified roles, as the legacy host reports it. */
  migration: 'NotMigrated' | 'Migrating' | 'Migrated';
  users: FakeUser[];
  /** Place names, keyed by universe id, then by place id. */
  experiences: Record<number, Record<number, string>>;
}

/** Carries out the request, or throws `Refused`. */
export function carryOut(world: World, request: FakeRequest, entry: JournalEntry): FakeAnswer {
  if (request.operation === 'publicRoles') return listPublicRoles(world, request);
  if (request.operation === 'migration') return json(200, { status: world.migration });
  if (request.operation === 'userNames') return findUsers(world, bodyOf(request));
  if (request.operation === 'places') return listPlaces(world, request);
  if (request.operation === 'unknown') throw gatewayError(404, 0, 'Not Found');
  if (request.operation === 'introspect') return introspect(world.credential, bodyOf(request));
  authenticate(world.credential, request.headers['x-api-key']);
  const headers = world.budgets.charge(request.operation);
  const answer = reshaped(world, answerOf(world, request, entry));
  const isWrite = request.operation === 'assign' || request.operation === 'unassign';
  if (isWrite && world.writeAnswer === 'no content') return { status: 204, headers, body: '' };
  return json(200, isWrite && world.writeAnswer === 'empty object' ? {} : answer, headers);
}

/** Applies `addedFields` and `removedFields` to a resource, or to each resource in a list. */
function reshaped(world: World, answer: unknown): unknown {
  const fields = Object.entries(Object(answer));
  const isList = fields.some(([name]) => name === 'groupRoles' || name === 'groupMemberships');
  if (isList) {
    const items = (value: unknown) => (Array.isArray(value) ? value.map((item) => reshaped(world, item)) : value);
    return Object.fromEntries(fields.map(([name, value]) => [name, items(value)]));
  }
  const kept = fields.filter(([name]) => !world.removedFields.includes(name));
  return { ...Object.fromEntries(kept), ...world.addedFields };
}

function answerOf(world: World, request: FakeRequest, entry: JournalEntry): unknown {
  switch (request.operation) {
    case 'group':
      requireGroup(world, request);
      return groupResource(world.group);
    case 'user':
      return readUser(world, request);
    case 'roles':
      return listRoles(world, request);
    case 'role':
      return readRole(world, request);
    case 'memberships':
      return listMemberships(world, request);
    default:
      return writeRole(world, request, entry);
  }
}

/** Sorts roles by id, not by rank, so the owner's role is often the first. */
function listRoles(world: World, request: FakeRequest): unknown {
  requireOpenGroup(world, request);
  const byId = (world.rolesBehind.list ?? world.group.roles)
    .filter(({ isPrivate }) => !isPrivate)
    .sort((a, b) => a.id - b.id);
  const { page, nextPageToken } = pageOf(byId, request.query, { default: 10, most: 20 });
  const groupRoles = page.map((role) => roleResource(world.group, role, world.credential.userId));
  return { groupRoles, ...token(world, nextPageToken) };
}

function readUser({ users }: World, { userId }: FakeRequest): unknown {
  const user = users.find(({ id }) => id === userId);
  if (user === undefined) throw notFound('The user was not found.');
  return { path: `users/${user.id}`, id: String(user.id), name: user.name, displayName: `~${user.name}~` };
}

/** Looks up names as the real service does: omits unknown names, and also finds users by previous names. */
function findUsers({ users, budgets }: World, body: Record<string, unknown>): FakeAnswer {
  const headers = budgets.charge('userNames');
  const asked = body['usernames'];
  if (!Array.isArray(asked)) throw gatewayError(400, 0, 'The request body is malformed.');
  if (asked.length > 50) throw gatewayError(400, 2, 'Too many usernames.');
  const data = asked.flatMap((requestedUsername: string) => {
    const isMeant = (name: string) => name.toLowerCase() === requestedUsername.toLowerCase();
    const user =
      users.find(({ name }) => isMeant(name)) ?? users.find(({ previousNames }) => previousNames?.some(isMeant));
    if (user === undefined || (user.isBanned && body['excludeBannedUsers'] !== false)) return [];
    return [
      { requestedUsername, hasVerifiedBadge: false, id: user.id, name: user.name, displayName: `~${user.name}~` },
    ];
  });
  return json(200, { data }, headers);
}

/** Lists places in cursor-based pages. The response for an unknown universe is made up. */
function listPlaces({ experiences }: World, { universeId, query }: FakeRequest): FakeAnswer {
  const places = experiences[universeId];
  if (places === undefined) throw gatewayError(404, 1, 'The universe does not exist.');
  const limit = Number(query.get('limit') ?? 10);
  if (![10, 25, 50, 100].includes(limit)) throw gatewayError(400, 0, 'Allowed values for limit: 10, 25, 50, 100');
  const from = Number(query.get('cursor') ?? 0);
  const all = Object.entries(places).map(([id, name]) => ({ id: Number(id), universeId, name, description: '' }));
  const next = from + limit < all.length ? String(from + limit) : null;
  return json(200, { previousPageCursor: null, nextPageCursor: next, data: all.slice(from, from + limit) });
}

function readRole(world: World, request: FakeRequest): unknown {
  requireOpenGroup(world, request);
  const role = (world.rolesBehind.alone ?? world.group.roles).find(({ id }) => id === request.roleId);
  if (role === undefined) throw notFound('The role was not found.');
  return roleResource(world.group, role, world.credential.userId);
}

function listMemberships(world: World, request: FakeRequest): unknown {
  const { group } = world;
  const anyGroup = request.groupId === '-';
  if (!anyGroup) requireOpenGroup(world, request);
  const filter = parseFilter(request.query.get('filter'), { anyGroup });
  const seen = group.userIds.flatMap((userId) => {
    const roleIds = group.held(userId, world.now() - world.lagMs);
    return roleIds === undefined ? [] : [{ userId, roleIds }];
  });
  const found = seen.filter(({ userId, roleIds }) => {
    if (filter.kind === 'users') return filter.userIds.includes(userId);
    return (
      filter.kind === 'all' ||
      (filter.groupId === group.id && (roleIds.includes(filter.roleId) || filter.roleId === group.base.id))
    );
  });
  const { page, nextPageToken } = pageOf(found, request.query, { default: 10, most: 100 });
  const groupMemberships = page.map(({ userId, roleIds }) =>
    membershipResource(group, userId, roleIds, world.rolesField),
  );
  return { groupMemberships, ...token(world, nextPageToken) };
}

function writeRole(world: World, request: FakeRequest, entry: JournalEntry): unknown {
  const { group, credential } = world;
  const mayWrite = hasScope(credential, 'write', group.id);
  if (!mayWrite && !world.acceptsWritesWithoutScope) throw insufficientScope();
  const kind = request.operation === 'assign' ? 'assign' : 'unassign';
  const { role: rolePath } = bodyOf(request);
  const write = { kind, groupId: Number(request.groupId), userId: request.userId, rolePath } as const;
  const { userId, before, after } = decideWrite(group, credential.userId, write, world);
  if (!mayWrite) return membershipResource(group, userId, before, world.rolesField);
  if (world.writesOnlyEcho) {
    group.echo(userId, after);
    return membershipResource(group, userId, after, world.rolesField);
  }
  lockMembership(world, userId);
  if (before.join() !== after.join()) {
    group.change(userId, after, world.now());
    world.journal.apply(entry, after);
  }
  return membershipResource(group, userId, after, world.rolesField);
}

function lockMembership({ group, membershipLock, now }: World, userId: number): void {
  if (membershipLock === undefined || now() - group.changedAt(userId) >= membershipLock.ms) return;
  throw v2Error(membershipLock.status, 'UNKNOWN', membershipLock.text);
}

function listPublicRoles(world: World, request: FakeRequest): FakeAnswer {
  if (!world.hasPublicRoles)
    throw gatewayError(503, 0, 'The operation is temporarily unavailable. Please try again later.');
  if (Number(request.groupId) !== world.group.id) throw gatewayError(400, 1, 'The group is invalid or does not exist.');
  return json(200, publicRoleList(world.group));
}

function requireGroup({ group }: World, { groupId }: FakeRequest): void {
  if (Number(groupId) !== group.id) throw notFound('The group was not found.');
}

/** Refuses reads of a locked group's roles and members. Roblox's response is unknown; a refusal is the worst case. */
function requireOpenGroup(world: World, request: FakeRequest): void {
  requireGroup(world, request);
  if (world.group.locked) throw permissionDenied('The group is locked.');
}

function bodyOf({ headers, body }: FakeRequest): Record<string, unknown> {
  if (headers['content-length'] === undefined) throw invalidArgument('The content-length header is missing.');
  if (!/^application\/json\b/.test(headers['content-type'] ?? ''))
    throw invalidArgument('The content-type header is missing.');
  if (typeof body !== 'object' || body === null) throw invalidArgument('The request body is not a JSON object.');
  return body as Record<string, unknown>;
}

function token({ endsWithEmptyToken, pagesRepeat }: World, nextPageToken: string): { nextPageToken?: string } {
  if (nextPageToken === '' && pagesRepeat) return { nextPageToken: 'again' };
  return nextPageToken === '' && !endsWithEmptyToken ? {} : { nextPageToken };
}
