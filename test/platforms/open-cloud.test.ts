import dns from 'node:dns';
import { type AddressInfo, createServer } from 'node:net';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { deadlineIn } from '../../src/base/clock.ts';
import { type ErrorCode, isRankdError, RankdError } from '../../src/base/errors.ts';
import { OpenCloudPlatform, type OpenCloudTuning } from '../../src/platforms/open-cloud.ts';
import type { BaseRoleMemory } from '../../src/platforms/upstream/base-role.ts';
import type { CallContext, Clock, WriteKind } from '../../src/ports/index.ts';
import { platformContract } from '../contracts/platform-contract.ts';
import {
  type FakeOpenCloud,
  type FaultKind,
  sampleRoles,
  sampleUsers,
  startFakeOpenCloud,
} from '../support/fake-open-cloud/index.ts';
import { pacedTime, SkippableClock } from '../support/paced-clock.ts';

const { recruit, trainee, officer, captain, base } = sampleRoles;
const tuning = { backOffMs: 4, maxBackOffMs: 20, minTryMs: 10 };
/** Leaves the last attempt enough time to get a response before the deadline. */
const unhurried = { ...tuning, minTryMs: 250 };
const assign = { userId: 1001, roleId: officer };

function platformOn(
  fake: FakeOpenCloud,
  options: {
    baseUrl?: string;
    apiKey?: string;
    tuning?: Partial<OpenCloudTuning>;
    fetch?: typeof fetch;
    clock?: Clock;
    baseRoleMemory?: BaseRoleMemory;
  } = {},
) {
  return new OpenCloudPlatform({ ...fake, clock: pacedTime, tuning, ...options });
}

function callIn(ms: number, signal = deadlineIn(pacedTime, ms).signal): CallContext {
  return { signal, deadlineAt: pacedTime.monotonic() + ms, lane: 'test' };
}

platformContract('Open Cloud', async () => {
  const fake = await startFakeOpenCloud({ clock: pacedTime });
  return {
    platform: platformOn(fake),
    call: () => callIn(5_000),
    ids: {
      member: sampleUsers.trainee,
      officer: sampleUsers.bigId,
      veteran: sampleUsers.traineeAndCaptain,
      memberOnly: sampleUsers.memberOnly,
      actor: sampleUsers.actor,
      owner: sampleUsers.owner,
      stranger: sampleUsers.stranger,
      peer: sampleUsers.otherAdmin,
    },
    roles: sampleRoles,
    close: async () => {
      expect(fake.violations()).toEqual([]);
      await fake.close();
    },
  };
});

let fake: FakeOpenCloud;
let platform: OpenCloudPlatform;

beforeEach(async () => {
  fake = await startFakeOpenCloud({ clock: pacedTime });
  platform = platformOn(fake);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await expect.poll(() => fake.violations()).toEqual([]);
  await fake.close();
});

async function failure(answer: Promise<unknown>): Promise<RankdError> {
  const thrown = await answer.then(
    (value) => new Error(`succeeded with ${inspect(value)}`),
    (error: unknown) => error,
  );
  if (!isRankdError(thrown)) throw thrown;
  return thrown;
}

async function codeOf(answer: Promise<unknown>): Promise<ErrorCode> {
  return (await failure(answer)).code;
}

describe('the group and its roles', () => {
  test('a group without an owner has no owner', async () => {
    fake.group.ownerId = undefined;
    expect(await platform.group(callIn(1_000))).toEqual({ id: 700, name: 'Sample Fellowship', memberCount: 9 });
  });

  test.each([
    ['nulls', { displayName: null, memberCount: null, owner: null }, { name: 'Group 700', memberCount: 0 }],
    ['no values', {}, { name: 'Group 700', memberCount: 0 }],
    ['a count as text', { displayName: 'A', memberCount: '8', owner: '' }, { name: 'A', memberCount: 8 }],
  ])('a group is read with %s in the fields that ranking does not need', async (_what, fields, read) => {
    fake.faults.add({ operation: 'group', kind: 'body', body: JSON.stringify({ id: '700', ...fields }) });
    expect(await platform.group(callIn(1_000))).toEqual({ id: 700, ...read });
  });

  test('every role of a group of 40 is listed once and in order', async () => {
    for (let index = 0; index < 32; index += 1)
      fake.group.roles.push({ id: 9_000 - index, name: `R${index}`, rank: 100 + (index % 20) });
    const roles = await platform.roles(callIn(1_000));
    expect(roles).toHaveLength(40);
    expect(roles.slice(2)).toEqual(roles.slice(2).sort((a, b) => a.rank - b.rank || a.id - b.id));
    expect(fake.journal.requests('roles')).toHaveLength(2);
  });

  test('a role without a rank has rank 0', async () => {
    const groupRoles = [
      { id: '5', displayName: 'Guest' },
      { id: '6', displayName: 'Member', rank: 1 },
    ];
    fake.faults.add({ operation: 'roles', kind: 'body', body: JSON.stringify({ groupRoles }) });
    expect(await platform.roles(callIn(1_000))).toMatchObject([{ id: 5, rank: 0, kind: 'guest' }, { id: 6 }]);
  });
});

test.each<[permission: string, powers: string[]]>([
  ['changeRank', ['change ranks']],
  ['acceptRequests', ['accept members']],
  ['exileMembers', ['remove members']],
  ['banMembers', ['remove members']],
  ['manageRelationships', ['manage the group']],
  ['spendGroupFunds', ['manage the group']],
  ['manageGroupUniverses', ['manage the group']],
  ['createApiKeys', ['manage the group']],
  ['manageApiKeys', ['manage the group']],
  ['viewWallPosts', []],
])('a role with the permission %s has the powers %j', async (permission, powers) => {
  const role = {
    path: 'groups/700/roles/7',
    id: '7',
    displayName: 'Aide',
    rank: 20,
    permissions: { [permission]: true },
  };
  fake.faults.add({ operation: 'role', kind: 'body', body: JSON.stringify(role) });
  expect(await platform.role(7, callIn(5_000))).toMatchObject({ powers });
});

test('an endless list of roles is read only until a page has no new role', async () => {
  const [owner] = (await platform.roles(callIn(5_000))).filter(({ kind }) => kind === 'owner');
  const role = { id: String(owner?.id), displayName: 'Owner', rank: 255 };
  for (let page = 1; page < 50; page += 1) {
    const body = JSON.stringify({ groupRoles: [role], nextPageToken: `page ${page}` });
    fake.faults.add({ operation: 'roles', kind: 'body', body });
  }
  const before = fake.journal.requests('roles').length;
  await platform.roles(callIn(5_000)).catch(() => undefined);
  expect(fake.journal.requests('roles').length - before).toBe(2);
});

describe('the base role', () => {
  /** Creates a `BaseRoleMemory` that needs no store. */
  const memory = (initial?: number) => {
    let id = initial;
    const store = async (roleId: number) => {
      id = roleId;
    };
    return { find: async () => id, store, stored: () => id };
  };
  const publicRoleReads = () => fake.journal.requests('publicRoles').length;
  const rankOne = async (by = platform, call = callIn(1_000)) =>
    (await by.roles(call)).filter(({ rank }) => rank === 1).map(({ id, kind }) => [kind, id]);
  const found = [
    ['base', base],
    ['custom', recruit],
  ];
  const unclear = [base, recruit].sort((a, b) => a - b).map((id) => ['unclear', id]);

  test('is identified by the public list, which is read once, and is listed before the other role of rank 1', async () => {
    const baseRoleMemory = memory();
    platform = platformOn(fake, { baseRoleMemory });
    expect(await rankOne()).toEqual(found);
    fake.hasPublicRoles = false;
    expect(await rankOne()).toEqual(found);
    expect([publicRoleReads(), baseRoleMemory.stored()]).toEqual([1, base]);
  });

  test('is known after a restart, without a request', async () => {
    expect(await rankOne(platformOn(fake, { baseRoleMemory: memory(base) }))).toEqual(found);
    expect(fake.journal.entries.map(({ operation }) => operation)).toEqual(['roles']);
  });

  test('is found again if the stored one is no longer a role of the group', async () => {
    const baseRoleMemory = memory(404_404);
    expect(await rankOne(platformOn(fake, { baseRoleMemory }))).toEqual(found);
    expect(baseRoleMemory.stored()).toBe(base);
  });

  test('is the only role of rank 1 without any request, and remains so after a second one is added', async () => {
    fake.group.roles = fake.group.roles.filter(({ id }) => id !== recruit);
    expect(await rankOne()).toEqual([['base', base]]);
    fake.group.roles.push({ id: 5, name: 'Recruit', rank: 1 });
    expect(await rankOne()).toContainEqual(['base', base]);
    expect(publicRoleReads()).toBe(0);
  });

  test('is missing in a group without a role of rank 1, unless the public list marks one', async () => {
    const others = fake.group.roles.filter(({ rank }) => rank !== 1);
    fake.group.roles = [...others, { id: base, name: 'Member', rank: 7, isBase: true }];
    fake.hasPublicRoles = false;
    const kinds = async (by: OpenCloudPlatform) => new Set((await by.roles(callIn(1_000))).map(({ kind }) => kind));
    expect(await kinds(platform)).toEqual(new Set(['guest', 'custom', 'owner']));
    fake.hasPublicRoles = true;
    expect(await kinds(platformOn(fake))).toEqual(new Set(['guest', 'base', 'custom', 'owner']));
  });

  test.each(['hang', 'status 503', 'html'] as const)(
    'is derived from members if the public list does not respond: %s',
    async (kind) => {
      fake.faults.add({ operation: 'publicRoles', kind, times: 99 });
      const baseRoleMemory = memory();
      expect(await rankOne(platformOn(fake, { baseRoleMemory }))).toEqual(found);
      expect(baseRoleMemory.stored()).toBe(base);
      const filters = fake.journal.requests('memberships').map(({ path }) => decodeURIComponent(path));
      expect(filters).toContainEqual(expect.stringContaining(`filter=role == 'groups/700/roles/${base}'`));
    },
  );

  test('is also derived if members list it like other roles, as the one that all of them hold', async () => {
    fake.hasPublicRoles = false;
    fake.rolesField = 'withBase';
    const baseRoleMemory = memory();
    expect(await rankOne(platformOn(fake, { baseRoleMemory }))).toEqual(found);
    expect(baseRoleMemory.stored()).toBe(base);
  });

  test.each<[what: string, spoil: () => unknown]>([
    ['all of them hold both', () => fake.group.userIds.map((userId) => fake.group.setMember(userId, [recruit]))],
    ['no member holds the other', () => fake.group.removeMember(sampleUsers.recruit)],
  ])('is not guessed from members who list it, if %s', async (_what, spoil) => {
    fake.hasPublicRoles = false;
    fake.rolesField = 'withBase';
    spoil();
    expect(await rankOne()).toEqual(unclear);
  });

  test('is derived from any member who holds no other role, if nothing else shows it', async () => {
    fake.hasPublicRoles = false;
    fake.faults.add({ operation: 'memberships', kind: 'status 400', times: 2 });
    expect(await rankOne()).toEqual(unclear);
    await platform.getMember(1001, callIn(1_000));
    expect(await rankOne()).toEqual(unclear);
    await platform.getMember(sampleUsers.memberOnly, callIn(1_000));
    expect(await rankOne()).toEqual(found);
  });

  test('is derived from a refusal, even if another role was assumed', async () => {
    const baseRoleMemory = memory(recruit);
    platform = platformOn(fake, { baseRoleMemory });
    expect(await rankOne()).toContainEqual(['base', recruit]);
    expect(await codeOf(platform.assignRole({ userId: 1001, roleId: base }, callIn(1_000)))).toBe('platform_rejected');
    expect(await rankOne()).toEqual(found);
    expect(baseRoleMemory.stored()).toBe(base);
  });

  test('stays unknown if nothing shows it, and is looked up again only after half a minute', async () => {
    const clock = new SkippableClock();
    platform = platformOn(fake, { clock });
    fake.rolesField = 'absent';
    fake.faults.add({ operation: 'publicRoles', kind: 'status 503', times: 99 });
    const readRankOne = () => rankOne(platform, { ...callIn(1_000), deadlineAt: clock.monotonic() + 1_000 });
    const [first, second] = await Promise.all([readRankOne(), readRankOne()]);
    for (const each of [first, second, await readRankOne()]) expect(each).toEqual(unclear);
    expect([publicRoleReads(), fake.journal.requests('memberships').length]).toEqual([1, 2]);
    clock.skip(25_000);
    await readRankOne();
    expect(publicRoleReads()).toBe(1);
    clock.skip(6_000);
    await readRankOne();
    expect(publicRoleReads()).toBe(2);
  });

  test('is found even if the store fails', async () => {
    const fail = async () => Promise.reject(new RankdError('store_unavailable', 'The disk is full.'));
    expect(await rankOne(platformOn(fake, { baseRoleMemory: { find: fail, store: fail } }))).toEqual(found);
  });

  test('is found early enough to leave most of a short deadline to later calls, even if the public list does not respond', async () => {
    fake.faults.add({ operation: 'publicRoles', kind: 'hang', times: 99 });
    const call = callIn(1_000);
    expect(await rankOne(platform, call)).toEqual(found);
    expect(call.deadlineAt - pacedTime.monotonic()).toBeGreaterThan(500);
    expect(await platform.getMember(1002, call)).toMatchObject({ roleIds: [officer] });
  });

  test('is found after waiting only a few seconds for the public list, however much time is left', async () => {
    fake.faults.add({ operation: 'publicRoles', kind: 'hang', times: 99 });
    platform = platformOn(fake, { tuning: { ...tuning, publicRolesTimeoutMs: 100 } });
    const begun = pacedTime.monotonic();
    expect(await rankOne(platform, callIn(8_000))).toEqual(found);
    expect(pacedTime.monotonic() - begun).toBeLessThan(1_000);
  });
});

describe('a member', () => {
  test('is requested with a percent-encoded filter, and not from a cache', async () => {
    await platform.getMember(1001, callIn(1_000));
    const [request] = fake.journal.requests('memberships');
    expect(request?.path).toMatch(/\/memberships\?filter=user%20%3D%3D%20(%27|')users%2F1001(%27|')$/);
    expect(request?.headers).toMatchObject({ 'cache-control': 'no-cache', 'x-api-key': fake.apiKey });
  });

  test.each(['withoutBase', 'withBase', 'absent'] as const)(
    'is read completely if roles are listed %s',
    async (rolesField) => {
      fake.rolesField = rolesField;
      const seen = async (userId: number) =>
        (await platform.getMember(userId, callIn(1_000)))?.roleIds.filter((id) => id !== base);
      expect(await seen(1003)).toEqual([]);
      expect(await seen(1002)).toEqual([officer]);
      expect(await seen(1004)).toEqual(rolesField === 'absent' ? [captain] : [captain, trainee]);
    },
  );

  test.each([
    ['roles', { role: 'groups/700/roles/5', roles: null }],
    ['role', { role: null, roles: ['groups/700/roles/5'] }],
  ])('is read completely if %s is null', async (_field, roles) => {
    const body = JSON.stringify({ groupMemberships: [{ user: 'users/1001', ...roles }] });
    fake.faults.add({ operation: 'memberships', kind: 'body', body });
    expect(await platform.getMember(1001, callIn(1_000))).toEqual({ userId: 1001, roleIds: [5] });
  });

  test('on a later page is found', async () => {
    fake.faults.add({
      operation: 'memberships',
      kind: 'body',
      body: '{"groupMemberships":[],"nextPageToken":""}',
      when: 'after',
    });
    expect(await platform.getMember(1001, callIn(1_000))).toBeUndefined();
    const unfiltered = '{"groupMemberships":[],"nextPageToken":"more"}';
    fake.faults.add({ operation: 'memberships', kind: 'body', body: unfiltered });
    const later = '{"groupMemberships":[{"user":"users/1001","role":"groups/700/roles/5"}]}';
    fake.faults.add({ operation: 'memberships', kind: 'body', body: later });
    expect(await platform.getMember(1001, callIn(1_000))).toEqual({ userId: 1001, roleIds: [5] });
    expect(fake.journal.requests('memberships').at(-1)?.path).toContain('&pageToken=more');
  });

  test('is not searched for further once a page repeats', async () => {
    const body = '{"groupMemberships":[],"nextPageToken":"more"}';
    fake.faults.add({ operation: 'memberships', kind: 'body', body, times: 50 });
    expect(await platform.getMember(1001, callIn(1_000))).toBeUndefined();
    expect(fake.journal.requests('memberships')).toHaveLength(2);
  });

  test('is not searched for on endless empty pages', async () => {
    const empty = '{"groupMemberships":[],"nextPageToken":"';
    for (let page = 0; page < 50; page += 1)
      fake.faults.add({ operation: 'memberships', kind: 'body', body: `${empty}${page}"}` });
    expect(await codeOf(platform.getMember(1001, callIn(1_000)))).toBe('platform_rejected');
    expect(fake.journal.requests('memberships').length).toBeLessThan(5);
  });

  test('is never taken from a response about another user', async () => {
    const other = '{"groupMemberships":[{"user":"users/1002","role":"groups/700/roles/5","roles":[]}]}';
    fake.faults.add({ operation: 'memberships', kind: 'body', body: other });
    expect(await codeOf(platform.getMember(1001, callIn(1_000)))).toBe('platform_rejected');
    fake.faults.add({ operation: 'assign', kind: 'body', body: '{"user":"users/1002","role":"groups/700/roles/5"}' });
    expect(await platform.assignRole(assign, callIn(1_000))).toBeUndefined();
  });
});

test('all places of an experience are listed, even those after an empty page', async () => {
  fake.experiences[98] = { 1001: 'Lobby' };
  const body = '{"data":[],"nextPageCursor":"0","previousPageCursor":null}';
  fake.faults.add({ operation: 'places', kind: 'body', body });
  expect(await platform.placesOf(98, callIn(1_000))).toEqual([{ id: 1001, name: 'Lobby' }]);
});

describe('the credential', () => {
  const scope = (operations: string[], groupIds?: string[]) => [
    { name: 'group', operations, ...(groupIds && { groupIds }) },
  ];
  const check = () => platform.checkCredential(callIn(1_000));

  test('is described by introspection, which gets the key only in the body', async () => {
    fake.credential.expirationTimeUtc = '2027-01-01T12:00:00.000Z';
    const expiresAt = Date.UTC(2027, 0, 1, 12);
    expect(await check()).toEqual({ state: 'valid', userId: 9001, expiresAt });
    expect(fake.journal.requests('introspect')[0]?.headers).not.toHaveProperty('x-api-key');
  });

  test('with an expiry in the year 1 never expires', async () => {
    fake.credential.expirationTimeUtc = '0001-01-01T00:00:00Z';
    expect(await check()).not.toHaveProperty('expiresAt');
  });

  test('is reported as disabled, expired or invalid', async () => {
    fake.credential.expired = true;
    expect(await check()).toMatchObject({ state: 'expired' });
    fake.credential.enabled = false;
    expect(await check()).toMatchObject({ state: 'disabled' });
    fake.credential.apiKey = 'replaced';
    expect(await check()).toEqual({ state: 'invalid', refusal: '401 0: Invalid API Key' });
  });

  test.each([
    ['for all groups', scope(['read', 'write'], ['*']), true],
    ['for this group', scope(['write'], ['1', '700']), true],
    ['for another group', scope(['write'], ['701']), false],
    ['for reading', scope(['read'], ['*']), false],
    ['for something else', [{ name: 'asset', operations: ['write'], groupIds: ['*'] }], false],
    ['for groups it does not list', scope(['write']), undefined],
    ['that is not reported', undefined, undefined],
  ])('with a scope %s has the matching right to write', async (_what, scopes, canWrite) => {
    fake.credential.scopes = scopes;
    expect((await check()).canWrite).toBe(canWrite);
  });
});

const faults: FaultKind[] = ['status 500', 'status 503', 'status 499', 'status 409', 'reset', 'hang'];
/** Faults in a response with a success status. */
const unreadable: FaultKind[] = ['html', 'empty', 'truncated', 'oversized', 'cut'];

describe.each([...faults, ...unreadable])('%s', (kind) => {
  beforeEach(() => {
    if (kind === 'hang') platform = platformOn(fake, { tuning: { ...tuning, perTryTimeoutMs: 40 } });
  });

  test('once: a read still succeeds', async () => {
    const times = kind === 'html' ? 1 : 2; // a read is not retried after a second web page
    fake.faults.add({ operation: 'memberships', kind, when: 'after', times });
    expect(await platform.getMember(1002, callIn(2_000))).toMatchObject({ roleIds: [officer] });
  });

  test('repeatedly: a read throws platform_unavailable before the deadline', async () => {
    fake.faults.add({ operation: 'memberships', kind, when: 'after', times: 999 });
    const begun = pacedTime.monotonic();
    expect(await codeOf(platform.getMember(1002, callIn(60)))).toBe('platform_unavailable');
    expect(pacedTime.monotonic() - begun).toBeLessThan(500);
  });
});

describe.each(faults)('%s', (kind) => {
  beforeEach(() => {
    if (kind === 'hang') platform = platformOn(fake, { tuning: { ...tuning, perTryTimeoutMs: 40 } });
  });

  test.each(['before', 'after'] as const)('once, %s the write is carried out: the write is confirmed', async (when) => {
    fake.faults.add({ operation: 'assign', kind, when });
    expect(await platform.assignRole(assign, callIn(2_000))).toMatchObject({ roleIds: [officer, trainee] });
    expect(fake.group.held(1001)).toEqual([officer, trainee]);
  });

  test.each(['before', 'after'] as const)(
    'repeatedly, %s the write is carried out: the outcome is unknown',
    async (when) => {
      fake.faults.add({ operation: 'assign', kind, when, times: 999 });
      expect(await codeOf(platform.assignRole(assign, callIn(60)))).toBe('outcome_unknown');
    },
  );
});

test.each(unreadable)('a write whose response is %s counts as accepted and is not retried', async (kind) => {
  fake.faults.add({ operation: 'assign', kind, when: 'after', times: 999 });
  expect(await platform.assignRole(assign, callIn(1_000))).toBeUndefined();
  expect(fake.journal.requests('assign')).toHaveLength(1);
});

test.each<[FaultKind, string]>([
  ['hang', 'it does not respond in time'],
  ['reset', 'the connection was lost (ECONNRESET)'],
  ['html', 'a web page was returned instead'],
  ['truncated', 'the response could not be read'],
])('the error for %s contains: %s', async (kind, what) => {
  fake.faults.add({ operation: 'memberships', kind, times: 999 });
  platform = platformOn(fake, { tuning: { ...unhurried, perTryTimeoutMs: 100 } });
  expect((await failure(platform.getMember(1001, callIn(500)))).message).toContain(what);
});

test('a response longer than a mebibyte is rejected, even if it is valid', async () => {
  const right = '{"groupMemberships":[{"user":"users/1001","role":"groups/700/roles/5"}]}';
  const body = right.padEnd(1024 * 1024 + 1);
  fake.faults.add({ operation: 'memberships', kind: 'body', body, times: 999 });
  expect(await codeOf(platform.getMember(1001, callIn(200)))).toBe('platform_unavailable');
});

describe('a write', () => {
  test('has an unknown outcome if a refusal follows an unconfirmed attempt', async () => {
    fake.faults.add({ operation: 'assign', kind: 'status 503', when: 'after' });
    fake.faults.add({ operation: 'assign', kind: 'status 403' });
    expect(await codeOf(platform.assignRole(assign, callIn(1_000)))).toBe('outcome_unknown');
    expect(fake.group.held(1001)).toContain(officer);
  });

  test('is refused if a refusal follows a 429', async () => {
    fake.faults.add({ operation: 'assign', kind: 'status 429' });
    fake.faults.add({ operation: 'assign', kind: 'status 403' });
    expect(await codeOf(platform.assignRole(assign, callIn(1_000)))).toBe('above_acting_account');
  });

  test('has an unknown outcome if the rate limit prevents a retry after an unconfirmed attempt', async () => {
    fake.faults.add({ operation: 'assign', kind: 'reset', when: 'after' });
    fake.faults.add({ operation: 'assign', kind: 'status 429', headers: { 'retry-after': '60' } });
    expect(await codeOf(platform.assignRole(assign, callIn(1_000)))).toBe('outcome_unknown');
  });

  test('to a closed port is known not to have been carried out', async () => {
    const closed = platformOn(fake, { baseUrl: 'http://127.0.0.1:0', tuning: unhurried }); // port 0 has no listener
    expect(await codeOf(closed.assignRole(assign, callIn(500)))).toBe('platform_unavailable');
  });

  test('whose connection breaks before it is established is known not to have been carried out', async () => {
    const closingServer = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => closingServer.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void closingServer.close());
    const { port } = closingServer.address() as AddressInfo;
    const broken = platformOn(fake, { baseUrl: `https://127.0.0.1:${port}`, tuning: unhurried }); // closed before TLS
    expect(await codeOf(broken.assignRole(assign, callIn(500)))).toBe('platform_unavailable');
  });

  test.each(['ENOTFOUND', 'EAI_AGAIN'])(
    'to a host without an address (%s) is known not to have been carried out',
    async (code) => {
      const unresolved = (...args: unknown[]) => {
        const answer = args.at(-1) as (error: Error) => void;
        setImmediate(answer, Object.assign(new Error(code), { code }));
      };
      const lookup = vi.spyOn(dns, 'lookup').mockImplementation(unresolved as typeof dns.lookup);
      const nowhere = platformOn(fake, { baseUrl: 'http://nowhere.invalid', tuning: unhurried });
      expect(await codeOf(nowhere.unassignRole(assign, callIn(500)))).toBe('platform_unavailable');
      expect(lookup).toHaveBeenCalledWith('nowhere.invalid', expect.anything(), expect.anything());
    },
  );

  test('that is aborted in flight has an unknown outcome at once', async () => {
    fake.faults.add({ operation: 'assign', kind: 'hang', when: 'after' });
    const callOff = new AbortController();
    const code = codeOf(platform.assignRole(assign, callIn(5_000, callOff.signal)));
    await expect.poll(() => fake.journal.writes()).toHaveLength(1);
    const begun = pacedTime.monotonic();
    callOff.abort();
    expect(await code).toBe('outcome_unknown');
    expect(pacedTime.monotonic() - begun).toBeLessThan(500);
  });

  test('that is refused is not retried', async () => {
    fake.credential.userId = 1004;
    expect(await codeOf(platform.assignRole(assign, callIn(1_000)))).toBe('above_acting_account');
    expect(fake.journal.writes()).toHaveLength(1);
  });

  test('with a disabled key throws platform_credential', async () => {
    fake.credential.enabled = false;
    expect(await codeOf(platform.assignRole(assign, callIn(1_000)))).toBe('platform_credential');
    expect(await codeOf(platform.getMember(1001, callIn(1_000)))).toBe('platform_credential');
  });

  test('without effect returns the unchanged member, so that the caller notices', async () => {
    fake.credential.scopes = [{ name: 'group', operations: ['read'], groupIds: ['*'] }];
    fake.acceptsWritesWithoutScope = true;
    expect(await platform.assignRole(assign, callIn(1_000))).toMatchObject({ userId: 1001, roleIds: [trainee] });
  });
});

test.each<[string, tries: number | 'many']>([
  ['ENOTFOUND', 2],
  ['CERT_HAS_EXPIRED', 2],
  ['ECONNREFUSED', 'many'],
])('a call whose connection fails with %s is attempted %s times', async (code, tries) => {
  const fetch = vi.fn(async () => {
    throw new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) });
  });
  expect(await codeOf(platformOn(fake, { fetch }).group(callIn(1_000)))).toBe('platform_unavailable');
  if (tries === 'many') expect(fetch.mock.calls.length).toBeGreaterThan(3);
  else expect(fetch).toHaveBeenCalledTimes(tries);
});

describe("the platform's budget", () => {
  test('starts with the documented limit of each operation', () => {
    const limits = Object.fromEntries(platform.pace().map(({ operation, limit }) => [operation, limit]));
    expect(limits).toMatchObject({ group: 150, roles: 300, memberships: 300, assign: 300, unassign: 300 });
  });

  test('is not blamed if the deadline passed before the request could be sent', async () => {
    const late = { ...callIn(1_000), deadlineAt: pacedTime.monotonic() - 1 };
    for (const answer of [platform.getMember(1001, late), platform.assignRole(assign, late)]) {
      const { code, message } = await failure(answer);
      expect(code).toBe('platform_unavailable');
      expect(message).toMatch(/no time .* nothing was sent/);
      expect(message).not.toContain('budget');
    }
    expect(fake.journal.entries).toEqual([]);
  });

  test('is given as the reason for a refusal if no time is left after a 429', async () => {
    fake.latencyMs = 200;
    fake.faults.add({ operation: 'memberships', kind: 'status 429' });
    platform = platformOn(fake, { tuning: { backOffMs: 0, minTryMs: 300 } });
    expect(await codeOf(platform.getMember(1001, callIn(400)))).toBe('platform_busy');
  });

  test('delays a retry for as long as retry-after requests', async () => {
    fake.faults.add({ operation: 'assign', kind: 'status 429', headers: { 'retry-after': '0.2' } });
    const begun = pacedTime.monotonic();
    await platform.assignRole(assign, callIn(2_000));
    expect(pacedTime.monotonic() - begun).toBeGreaterThanOrEqual(195);
    expect(fake.journal.writes()).toHaveLength(2);
  });

  test('allows a retry soon after a 429 without retry-after', async () => {
    fake.faults.add({ operation: 'assign', kind: 'status 429' });
    expect(await platform.assignRole(assign, callIn(2_000))).toMatchObject({ roleIds: [officer, trainee] });
  });

  test.each([400, 404] as const)('is not closed by a %i about one member, whatever its retry-after', async (status) => {
    fake.faults.add({ operation: 'assign', kind: `status ${status}`, headers: { 'retry-after': '600' } });
    expect((await failure(platform.assignRole(assign, callIn(1_000)))).retryAfterMs).toBeUndefined();
    const other = { ...assign, userId: sampleUsers.memberOnly };
    expect(await platform.assignRole(other, callIn(1_000))).toMatchObject({ userId: other.userId });
  });

  test('is closed by a 503 with retry-after', async () => {
    fake.faults.add({ operation: 'memberships', kind: 'status 503', headers: { 'retry-after': '30' } });
    expect(await codeOf(platform.getMember(1001, callIn(1_000)))).toBe('platform_unavailable');
    expect(await codeOf(platform.getMember(1002, callIn(1_000)))).toBe('platform_busy');
    expect(fake.journal.requests('memberships')).toHaveLength(1);
  });

  test('is not closed by a 503 without retry-after', async () => {
    fake.faults.add({ operation: 'memberships', kind: 'status 503', userId: 1001, times: 999 });
    expect(await codeOf(platform.getMember(1001, callIn(500)))).toBe('platform_unavailable');
    expect(await platform.getMember(1002, callIn(100))).toMatchObject({ userId: 1002 });
  });

  test('a wait longer than the deadline is reported at once, and nothing more is sent', async () => {
    fake.faults.add({ operation: 'assign', kind: 'status 429', headers: { 'retry-after': '30' }, times: 9 });
    const begun = pacedTime.monotonic();
    const error = await failure(platform.assignRole(assign, callIn(2_000)));
    expect(error.code).toBe('platform_busy');
    expect(error.retryAfterMs).toBeGreaterThan(29_000);
    expect(error.retryAfterMs).toBeLessThanOrEqual(30_001);
    expect(await codeOf(platform.assignRole(assign, callIn(2_000)))).toBe('platform_busy');
    expect(pacedTime.monotonic() - begun).toBeLessThan(500);
    expect(fake.journal.writes()).toHaveLength(1);
    expect(await platform.unassignRole({ userId: 1001, roleId: officer }, callIn(1_000))).toMatchObject({
      userId: 1001,
    });
  });

  test('spreads a larger burst, so that the platform refuses no call', async () => {
    const limits = { memberships: 8 };
    const small = await startFakeOpenCloud({ limits, windowMs: 1_000, clock: pacedTime });
    const reader = platformOn(small, { tuning: {} });
    await reader.getMember(1001, callIn(3_000));
    await Promise.all(Array.from({ length: 15 }, () => reader.getMember(1001, callIn(4_000))));
    expect(small.journal.entries.map(({ status }) => status)).toEqual(new Array(16).fill(200));
    await small.close();
  });

  test('is retried with a backoff that all callers share after 429s without retry-after', async () => {
    fake.faults.add({ operation: 'memberships', kind: 'status 429', times: 999 });
    platform = platformOn(fake, { tuning: { backOffMs: 100, maxBackOffMs: 10_000, minTryMs: 10 } });
    await Promise.all(Array.from({ length: 10 }, () => codeOf(platform.getMember(1001, callIn(1_500)))));
    expect(fake.journal.requests('memberships').length).toBeLessThan(20);
  });

  test('includes the calls that others make with a key of the same owner', async () => {
    fake.budgets.use('memberships', 298);
    await platform.getMember(1001, callIn(1_000));
    await platform.getMember(1001, callIn(1_000));
    expect(await codeOf(platform.getMember(1001, callIn(1_000)))).toBe('platform_busy');
    expect(fake.journal.requests('memberships').map(({ status }) => status)).toEqual([200, 200]);
  });
});

describe('a reservation for writes', () => {
  const unassign = { userId: 1001, roleId: trainee };
  const reserved = (...kinds: WriteKind[]) => platform.reserve(kinds, callIn(1_000));

  beforeEach(async () => {
    fake.budgets.use('unassign', 297);
    // The response reports that 2 calls are left.
    await platform.unassignRole({ userId: 1001, roleId: captain }, callIn(1_000));
  });

  test('covers all writes of a kind or none', async () => {
    expect(await codeOf(reserved('unassign', 'unassign', 'unassign'))).toBe('platform_busy');
    using _both = await reserved('unassign', 'unassign');
    expect(await codeOf(reserved('unassign'))).toBe('platform_busy');
  });

  test('blocks writes without it until it is disposed', async () => {
    const reservation = await reserved('unassign', 'unassign');
    expect(await codeOf(platform.unassignRole(unassign, callIn(1_000)))).toBe('platform_busy');
    await platform.unassignRole(unassign, { ...callIn(1_000), reservation });
    reservation[Symbol.dispose]();
    expect(await platform.unassignRole(unassign, callIn(1_000))).toMatchObject({ userId: 1001 });
  });

  test('covers all attempts of a write', async () => {
    using reservation = await reserved('unassign');
    fake.faults.add({ operation: 'unassign', kind: 'status 503' });
    expect(await platform.unassignRole(unassign, { ...callIn(1_000), reservation })).toMatchObject({ userId: 1001 });
    expect(fake.journal.writes(1001)).toHaveLength(3);
  });

  test('does not delay reads, even if it holds all slots that one lane can get', async () => {
    using _all = await platform.reserve(new Array<WriteKind>(270).fill('assign'), callIn(30_000));
    expect(await platform.getMember(1001, callIn(1_000))).toMatchObject({ userId: 1001 });
  });
});

describe('the key', () => {
  test('is in no error, whatever the platform responds', async () => {
    const echo = JSON.stringify({ code: 'INVALID_ARGUMENT', message: `Bad key ${fake.apiKey}` });
    const calls = {
      roles: () => platform.roles(callIn(25)),
      // Each attempt changes a different member, because the fake may notice an aborted write only after the next one
      // has begun.
      assign: () => platform.assignRole({ ...assign, userId: fake.journal.entries.length + 1 }, callIn(25)),
      introspect: () => platform.checkCredential(callIn(25)),
    };
    for (const operation of ['roles', 'assign', 'introspect'] as const) {
      for (const kind of [
        ...faults,
        ...unreadable,
        'redirect',
        'status 400',
        'status 403',
        'status 404',
        'status 418',
      ] as const) {
        fake.faults.clear();
        fake.faults.add({ operation, kind, body: echo, times: 999 });
        const error = await calls[operation]().catch((thrown: unknown) => thrown);
        expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(fake.apiKey);
      }
    }
  });

  test('is not even partly included in an error if a response that is not JSON begins with it', async () => {
    fake.faults.add({ operation: 'any', kind: 'body', body: `${fake.apiKey} is unknown`, times: 999 });
    const error = await failure(platform.group(callIn(25)));
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(fake.apiKey.slice(0, 8));
    expect(await platform.assignRole(assign, callIn(25))).toBeUndefined();
  });

  const odd = 'Zm+Fr/ZQ==';
  test.each([
    ['without escapes', odd],
    ['with slashes escaped', odd.replaceAll('/', '\\/')],
    ['with other characters escaped', odd.replaceAll('+', '\\u002B').replaceAll('=', '\\u003d')],
    ['escaped from end to end', odd.replaceAll(/./g, (one) => `\\u00${one.charCodeAt(0).toString(16)}`)],
  ])('echoed by the platform %s is masked, even in truncated JSON', async (_how, echoed) => {
    platform = platformOn(fake, { apiKey: odd });
    const json = `{"code":"INVALID_ARGUMENT","message":"Bad key ${echoed}."}`;
    for (const body of [json, json.slice(0, -1)]) {
      fake.faults.add({ operation: 'group', kind: 'status 400', body });
      expect((await failure(platform.group(callIn(1_000)))).message).toContain('Bad key [key].');
    }
  });

  test('that is not a valid header is rejected without being quoted', () => {
    for (const apiKey of ['', 'two\nlines', 'clé', 'with space']) {
      let thrown: unknown;
      try {
        platformOn(fake, { apiKey });
      } catch (error) {
        thrown = error;
      }
      expect(isRankdError(thrown, 'config_invalid')).toBe(true);
      if (apiKey !== '') expect(inspect(thrown)).not.toContain(apiKey);
    }
  });

  test('is not sent to the target of a redirect', async () => {
    fake.faults.add({ operation: 'group', kind: 'redirect', times: 999 });
    expect(await codeOf(platform.group(callIn(60)))).toBe('platform_unavailable');
    expect(fake.journal.requests('unknown')).toEqual([]);
  });

  test('is never sent to the host of the public role list', async () => {
    await platform.roles(callIn(1_000));
    expect(fake.journal.requests('publicRoles')[0]?.headers).not.toHaveProperty('x-api-key');
  });
});
