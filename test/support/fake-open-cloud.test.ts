import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { committedSchemas, mismatches, type Schemas } from '../../src/platforms/upstream/schemas.ts';
import { type FakeOpenCloud, sampleRoles, sampleUsers, startFakeOpenCloud } from './fake-open-cloud/index.ts';

let fake: FakeOpenCloud;
let nowMs = 0;

beforeEach(async () => {
  nowMs = 1_000_000;
  fake = await startFakeOpenCloud({ clock: { ...systemClock, monotonic: () => nowMs } });
});
afterEach(() => fake.close());

async function send(path: string, init: RequestInit = {}, { key = fake.apiKey as string | null } = {}) {
  const headers = new Headers(init.headers);
  if (key !== null) headers.set('x-api-key', key);
  const response = await fetch(`${fake.baseUrl}${path}`, { ...init, headers });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) };
}

const get = (path: string) => send(`/cloud/v2/groups/700${path}`);
const filtered = (filter: string, group = '700') =>
  send(`/cloud/v2/groups/${group}/memberships?filter=${encodeURIComponent(filter)}`);
const membership = async (userId: number) => (await filtered(`user == 'users/${userId}'`)).body.groupMemberships[0];
const rolePath = (roleId: number) => `groups/700/roles/${roleId}`;

function post(path: string, body: unknown) {
  return send(path, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } });
}

function write(kind: 'assign' | 'unassign', member: number | string, roleId: number | string) {
  const role = typeof roleId === 'number' ? rolePath(roleId) : roleId;
  return post(`/cloud/v2/groups/700/memberships/${member}:${kind}Role`, { role });
}

const { trainee, officer, captain } = sampleRoles;

describe('authentication', () => {
  test('the gateway refuses a key that is missing, unknown, disabled or expired', async () => {
    const gateway = { status: 401, body: { errors: [{ code: 0, message: 'Invalid API Key' }] } };
    expect(await send('/cloud/v2/groups/700', {}, { key: 'other' })).toMatchObject(gateway);
    expect(await send('/cloud/v2/groups/700', {}, { key: null })).toMatchObject(gateway);
    fake.credential.enabled = false;
    expect(await get('')).toMatchObject(gateway);
    fake.credential.enabled = true;
    fake.credential.expired = true;
    expect(await get('')).toMatchObject(gateway);
  });

  test('a write without the scope is refused, or accepted without effect if so configured', async () => {
    fake.credential.scopes = [{ name: 'group', operations: ['read'], groupIds: ['*'] }];
    expect(await write('assign', 1001, officer)).toMatchObject({ status: 403, body: { code: 'PERMISSION_DENIED' } });
    fake.acceptsWritesWithoutScope = true;
    expect(await write('assign', 1001, officer)).toMatchObject({ status: 200, body: { roles: [rolePath(trainee)] } });
    expect(fake.group.held(1001)).toEqual([trainee]);
  });

  test('a write scope for other groups does not count', async () => {
    fake.credential.scopes = [{ name: 'group', operations: ['write'], groupIds: ['701'] }];
    expect(await write('assign', 1001, officer)).toMatchObject({ status: 403 });
  });

  test('introspection reports a dead key in the body, with status 200', async () => {
    fake.credential.expired = true;
    const body = JSON.stringify({ apiKey: fake.apiKey });
    const init = { method: 'POST', body, headers: { 'content-type': 'application/json' } };
    const answer = await send('/api-keys/v1/introspect', init, { key: null });
    expect(answer.body).toMatchObject({ authorizedUserId: 9001, enabled: true, expired: true });
    expect(await post('/api-keys/v1/introspect', { apiKey: 'other' })).toMatchObject({ status: 401 });
  });
});

describe('lists', () => {
  test('roles are listed in pages of 10 (at most 20), not sorted by rank', async () => {
    for (let index = 0; index < 30; index += 1)
      fake.group.roles.push({ id: 1000 + index, name: `R${index}`, rank: 60 + index });
    expect((await get('/roles')).body.groupRoles).toHaveLength(10);
    const first = (await get('/roles?maxPageSize=100')).body;
    expect(first.groupRoles).toHaveLength(20);
    const second = (await get(`/roles?maxPageSize=100&pageToken=${first.nextPageToken}`)).body;
    expect(second).toMatchObject({ nextPageToken: '' });
    const all = [...first.groupRoles, ...second.groupRoles];
    const ranks = all.map(({ rank }) => rank);
    expect(new Set(all.map(({ id }) => id)).size).toBe(38);
    expect(ranks).not.toEqual([...ranks].sort((a, b) => a - b));
  });

  test('a page token with different parameters, or an invented one, is refused', async () => {
    const { nextPageToken } = (await get('/roles?maxPageSize=2')).body;
    const refused = { status: 400, body: { code: 'INVALID_ARGUMENT' } };
    expect(await get(`/roles?maxPageSize=3&pageToken=${nextPageToken}`)).toMatchObject(refused);
    expect(await get(`/roles?maxPageSize=2&pageToken=bogus`)).toMatchObject(refused);
    expect(await get('/roles?maxPageSize=many')).toMatchObject(refused);
  });

  test('the guest role has no member count, and the last page has no token if so configured', async () => {
    fake.endsWithEmptyToken = false;
    const { groupRoles, ...rest } = (await get('/roles')).body;
    expect(groupRoles.find(({ rank }: { rank: number }) => rank === 0)).not.toHaveProperty('memberCount');
    expect(groupRoles.find(({ id }: { id: string }) => id === String(sampleRoles.base))).toMatchObject({
      memberCount: 9,
    });
    expect(rest).toEqual({});
  });

  test('the filter accepts the documented forms', async () => {
    const users = async (filter: string, group?: string) =>
      (await filtered(filter, group)).body.groupMemberships.map(({ user }: { user: string }) => user);
    expect(await users("user == 'users/1001'")).toEqual(['users/1001']);
    expect(await users("user == 'users/5555'")).toEqual([]);
    expect(await users(`role == '${rolePath(officer)}'`)).toEqual(['users/1002', `users/${sampleUsers.bigId}`]);
    expect(await users("user in ['users/1001', 'users/1002']", '-')).toEqual(['users/1001', 'users/1002']);
  });

  test.each([
    'user == users/1001',
    'user = "users/1001"',
    "user == '1001'",
    "user == 'users/1001' && role == 'groups/700/roles/1'",
    "user in ['users/1001']",
    'nonsense',
  ])('the filter %s is refused', async (filter) => {
    expect(await filtered(filter)).toMatchObject({ status: 400, body: { code: 'INVALID_ARGUMENT' } });
  });

  test('a filter for more than 50 users is refused', async () => {
    const users = Array.from({ length: 51 }, (_, index) => `'users/${index + 1}'`);
    expect(await filtered(`user in [${users}]`, '-')).toMatchObject({ status: 400 });
  });

  test('a member with only the base role has an empty list of roles; switches select the other forms', async () => {
    expect(await membership(1003)).toMatchObject({ roles: [], role: rolePath(sampleRoles.base) });
    fake.rolesField = 'withBase';
    expect(await membership(1003)).toMatchObject({ roles: [rolePath(sampleRoles.base)] });
    fake.rolesField = 'absent';
    expect(await membership(1004)).toMatchObject({ role: rolePath(captain) });
    expect(await membership(1004)).not.toHaveProperty('roles');
  });

  test('only the legacy host has the public role list, with numeric ids and the base flag', async () => {
    const response = await fetch(`${fake.legacyBaseUrl}/v1/groups/700/roles`);
    const { roles } = (await response.json()) as { roles: Array<{ id: number; isBase: boolean }> };
    expect(roles.filter(({ isBase }) => isBase)).toMatchObject([{ id: sampleRoles.base }]);
    expect(await send('/v1/groups/700/roles')).toMatchObject({ status: 404, body: { errors: [{ code: 0 }] } });
  });
});

describe('writes', () => {
  test('a member is addressed by the user id or its base64url form; responses have the latter', async () => {
    const byId = await write('assign', 1001, officer);
    expect(byId.body).toMatchObject({
      path: 'groups/700/memberships/MTAwMQ',
      user: 'users/1001',
      role: rolePath(officer),
    });
    await write('assign', 'MTAwMQ', captain);
    expect(fake.group.held(1001)).toEqual([captain, officer, trainee]);
  });

  test('assigning and unassigning twice changes nothing the second time', async () => {
    for (const kind of ['assign', 'unassign'] as const) {
      expect(await write(kind, 1001, officer)).toMatchObject({ status: 200 });
      expect(await write(kind, 1001, officer)).toMatchObject({ status: 200 });
    }
    expect(fake.group.held(1001)).toEqual([trainee]);
    expect(fake.journal.writes(1001).map(({ applied }) => applied)).toEqual([true, false, true, false]);
  });

  test.each([
    ['the base role', 1001, sampleRoles.base, 400, 'INVALID_ARGUMENT'],
    ['the guest role', 1001, sampleRoles.guest, 400, 'INVALID_ARGUMENT'],
    ["the owner's role", 1001, sampleRoles.owner, 400, 'INVALID_ARGUMENT'],
    ['a bare role id', 1001, `${officer}`, 400, 'INVALID_ARGUMENT'],
    ['a role that does not exist', 1001, 99, 404, 'NOT_FOUND'],
    ["another group's role", 1001, `groups/701/roles/${officer}`, 404, 'NOT_FOUND'],
    ['a user who is not a member', 5555, officer, 404, 'NOT_FOUND'],
    ['an invalid member id', '!', officer, 404, undefined],
    ['the acting account', 9001, officer, 403, 'PERMISSION_DENIED'],
    ['a peer', 1005, officer, 403, 'PERMISSION_DENIED'],
    ['the owner', 9000, officer, 403, 'PERMISSION_DENIED'],
    ['a role as high as the actor', 1001, sampleRoles.admin, 403, 'PERMISSION_DENIED'],
  ])('%s is refused', async (_what, member, role, status, code) => {
    for (const kind of ['assign', 'unassign'] as const) {
      const answer = await write(kind, member, role);
      expect(answer.status).toBe(status);
      expect(answer.body.code).toBe(code);
    }
    expect(fake.journal.writes().some(({ applied }) => applied)).toBe(false);
  });

  test('an acting account without the permission can change no rank; the owner can change all lower ones', async () => {
    fake.credential.userId = 1004;
    expect(await write('assign', 1001, officer)).toMatchObject({ status: 403 });
    fake.credential.userId = 9000;
    expect(await write('assign', 1005, sampleRoles.admin)).toMatchObject({ status: 200 });
  });

  test('a body without length or content type is refused', async () => {
    const path = '/cloud/v2/groups/700/memberships/1001:assignRole';
    const body = JSON.stringify({ role: rolePath(officer) });
    const refused = { status: 400, body: { code: 'INVALID_ARGUMENT' } };
    expect(await send(path, { method: 'POST', body })).toMatchObject(refused);
    const stream = new Blob([body]).stream();
    const chunked = {
      method: 'POST',
      body: stream,
      duplex: 'half',
      headers: { 'content-type': 'application/json' },
    } as const;
    expect(await send(path, chunked)).toMatchObject(refused);
  });

  test('reads lag as configured; the response to a write does not', async () => {
    fake.lagMs = 5_000;
    expect(await write('assign', 1001, officer)).toMatchObject({
      body: { roles: [rolePath(officer), rolePath(trainee)] },
    });
    nowMs += 4_999;
    expect(await membership(1001)).toMatchObject({ roles: [rolePath(trainee)] });
    nowMs += 1;
    expect(await membership(1001)).toMatchObject({ role: rolePath(officer) });
  });
});

describe('budgets', () => {
  test('each operation has a separate budget, which three headers report and each window renews', async () => {
    fake.budgets.limits = { group: 2, roles: 5 };
    const first = await get('');
    expect(Object.fromEntries(first.headers)).toMatchObject({
      'x-ratelimit-limit': '2, 2;w=60',
      'x-ratelimit-remaining': '1',
      'x-ratelimit-reset': '60',
    });
    await get('');
    nowMs += 20_000;
    const refused = await get('');
    expect(refused).toMatchObject({ status: 429, body: { code: 'RESOURCE_EXHAUSTED' } });
    expect(refused.headers.get('retry-after')).toBe('40');
    fake.budgets.sendsRetryAfter = false;
    expect((await get('')).headers.get('retry-after')).toBeNull();
    expect(await get('/roles')).toMatchObject({ status: 200 });
    nowMs += 40_000;
    expect(await get('')).toMatchObject({ status: 200 });
  });
});

describe('faults', () => {
  test('affect the matching requests, before or after these are carried out', async () => {
    fake.faults.add({ operation: 'assign', kind: 'status 503', when: 'after', skip: 1, userId: 1001 });
    expect(await write('assign', 1002, captain)).toMatchObject({ status: 200 });
    expect(await write('assign', 1001, officer)).toMatchObject({ status: 200 });
    expect(await write('assign', 1001, captain)).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
    expect(fake.group.held(1001)).toEqual([captain, officer, trainee]);
    fake.faults.add({ operation: 'any', kind: 'status 500', times: 2 });
    expect(await write('unassign', 1001, captain)).toMatchObject({ status: 500 });
    expect(await get('')).toMatchObject({ status: 500 });
    expect(await write('unassign', 1001, captain)).toMatchObject({ status: 200 });
  });

  test('break the transport: a reset and a cut body fail, and a late response is correct', async () => {
    fake.faults.add({ operation: 'group', kind: 'reset' });
    await expect(get('')).rejects.toThrow();
    fake.faults.add({ operation: 'group', kind: 'cut', when: 'after' });
    await expect(get('')).rejects.toThrow();
    fake.faults.add({ operation: 'group', kind: 'slow', delayMs: 20 });
    expect(await get('')).toMatchObject({ status: 200, body: { id: '700' } });
  });
});

describe('violations', () => {
  test('an ordinary change has none', async () => {
    fake.expectNeverWithoutRole(1001);
    await write('assign', 1001, officer);
    await write('unassign', 1001, trainee);
    expect(fake.violations()).toEqual([]);
  });

  test('two concurrent writes for one member are one', async () => {
    fake.latencyMs = 20;
    await Promise.all([write('assign', 1001, officer), write('assign', 1002, captain)]);
    expect(fake.violations()).toEqual([]);
    await Promise.all([write('assign', 1001, captain), write('unassign', 1001, trainee)]);
    expect(fake.violations()).toHaveLength(1);
  });

  test('a repeated write after the first was given up is none', async () => {
    fake.faults.add({ operation: 'assign', kind: 'hang' });
    const path = '/cloud/v2/groups/700/memberships/1001:assignRole';
    const init = { method: 'POST', body: JSON.stringify({ role: rolePath(officer) }) };
    const givenUp = send(path, {
      ...init,
      headers: { 'content-type': 'application/json' },
      signal: AbortSignal.timeout(30),
    });
    await expect(givenUp).rejects.toThrow();
    await write('assign', 1001, officer);
    await expect.poll(() => fake.violations()).toEqual([]);
  });

  test('a watched member who is left without a role is one', async () => {
    fake.expectNeverWithoutRole(1001);
    await write('unassign', 1001, trainee);
    expect(fake.violations()).toEqual([`user 1001 was left without any role by unassign of role ${trainee}`]);
  });

  test('an unexpected write is one, but a read is none', async () => {
    fake.expectNoWrites();
    await get('');
    expect(fake.violations()).toEqual([]);
    await write('assign', 1001, officer);
    expect(fake.violations()).toHaveLength(1);
  });

  test('a write for a member without expected writes is one, but not for others', async () => {
    fake.expectNoWrites(1001);
    await write('assign', 1002, trainee);
    expect(fake.violations()).toEqual([]);
    await write('assign', 1001, officer);
    expect(fake.violations()).toHaveLength(1);
  });

  test('the key on the legacy host is one', async () => {
    await fetch(`${fake.legacyBaseUrl}/v1/groups/700/roles`, { headers: { 'x-api-key': fake.apiKey } });
    expect(fake.violations()).toEqual(['the key was sent to a host other than Open Cloud']);
  });
});

/** Returns the official schemas if RANKD_OPENAPI is the path of Roblox's OpenAPI document, which is not in git. */
function officialSchemas(): Schemas[] {
  const file = process.env['RANKD_OPENAPI'];
  return file === undefined ? [] : [JSON.parse(readFileSync(file, 'utf8')).components.schemas];
}

test('every response has the fields and types of the official schemas', async () => {
  fake.credential.userId = sampleUsers.owner; // this account sees the most fields
  const answers: Array<[string, unknown]> = [
    ['Group', (await get('')).body],
    ['ListGroupRolesResponse', (await get('/roles')).body],
    ['ListGroupMembershipsResponse', (await get('/memberships')).body],
    ['GroupMembership', (await write('assign', 1001, officer)).body],
    ['AssignRoleGroupMembershipRequest', { role: rolePath(officer) }],
  ];
  fake.group.ownerId = undefined;
  answers.push(['Group', (await get('')).body]);
  for (const schemas of [committedSchemas, ...officialSchemas()]) {
    expect(answers.flatMap(([name, body]) => mismatches(body, name, schemas))).toEqual([]);
  }
});

test('the schema check finds wrong types, unknown fields and missing fields', () => {
  const found = (value: unknown, name: string) => mismatches(value, name, committedSchemas);
  expect(found({ id: 7 }, 'Group')).toEqual(['Group.displayName: missing', 'Group.id: integer instead of string']);
  expect(found({ groupRoles: [{ id: '1', rank: 0, isBase: true }] }, 'ListGroupRolesResponse')).toEqual([
    'ListGroupRolesResponse.groupRoles[0].displayName: missing',
    'ListGroupRolesResponse.groupRoles[0].isBase: unknown field',
  ]);
  const membership = { user: 'users/1', role: 'groups/7/roles/1', path: null };
  expect(found({ ...membership, roles: 'groups/7/roles/1' }, 'GroupMembership')).toEqual([
    'GroupMembership.roles: string instead of array',
  ]);
  expect(found({ ...membership, roles: null, 4711: '' }, 'GroupMembership')).toEqual([
    'GroupMembership.roles: missing',
    'GroupMembership.?: unknown field',
  ]);
  expect(found({}, 'AssignRoleGroupMembershipRequest')).toEqual(['AssignRoleGroupMembershipRequest.role: missing']);
});

describe('if so configured, because the live service may do the same,', () => {
  test('writes are answered as if they had been carried out, one after the other, and change nothing', async () => {
    fake.writesOnlyEcho = true;
    expect((await write('assign', 1001, officer)).body.roles).toEqual([rolePath(officer), rolePath(trainee)]);
    expect((await write('unassign', 1001, trainee)).body.roles).toEqual([rolePath(officer)]);
    expect((await membership(1001)).roles).toEqual([rolePath(trainee)]);
  });

  test('an assigned role replaces all others', async () => {
    fake.assignReplaces = true;
    expect((await write('assign', 1001, officer)).body.roles).toEqual([rolePath(officer)]);
  });

  test('a write too soon after another one for the same member fails because of a lock', async () => {
    fake.membershipLock = { ms: 300, status: 403, text: 'FailedToAcquireLock' };
    expect(await write('assign', 1001, officer)).toMatchObject({ status: 200 });
    nowMs += 299;
    const refused = { status: 403, body: { message: 'FailedToAcquireLock' } };
    expect(await write('unassign', 1001, trainee)).toMatchObject(refused);
    expect(await write('assign', 1003, officer)).toMatchObject({ status: 200 });
    nowMs += 1;
    expect(await write('unassign', 1001, trainee)).toMatchObject({ status: 200 });
  });

  test('a write is answered with an empty object or with nothing', async () => {
    fake.writeAnswer = 'empty object';
    expect(await write('assign', 1001, officer)).toMatchObject({ status: 200, body: {} });
    fake.writeAnswer = 'no content';
    expect(await write('unassign', 1001, trainee)).toMatchObject({ status: 204, body: undefined });
    expect(fake.group.held(1001)).toEqual([officer]);
  });

  test('resources have added fields, or lack some', async () => {
    Object.assign(fake, { addedFields: { badge: 7 }, removedFields: ['roles'] });
    expect(await membership(1001)).toMatchObject({ user: 'users/1001', badge: 7 });
    expect(await membership(1001)).not.toHaveProperty('roles');
    expect((await get('')).body).toMatchObject({ id: '700', badge: 7 });
  });

  test('a write is carried out, although the response is a refusal', async () => {
    fake.faults.add({ operation: 'assign', kind: 'status 403', when: 'after' });
    expect(await write('assign', 1001, officer)).toMatchObject({ status: 403 });
    expect(fake.group.held(1001)).toEqual([officer, trainee]);
  });
});
