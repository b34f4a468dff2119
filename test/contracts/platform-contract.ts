import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ErrorCode, isRankdError, RankdError } from '../../src/base/errors.ts';
import type { Role, RoleKind } from '../../src/core/model.ts';
import type { CallContext, Platform, RoleWrite } from '../../src/ports/index.ts';

/** A platform with a fresh group for each test. */
export interface PlatformUnderTest {
  platform: Platform;
  /** Returns a context whose deadline is 5 s away. */
  call(): CallContext;
  /** User ids. At least one of `member`, `officer`, `veteran` and `memberOnly` is above 2^32. */
  ids: {
    /** Holds trainee. */
    member: number;
    /** Holds officer. */
    officer: number;
    /** Holds trainee and captain. */
    veteran: number;
    /** Holds only the base role. */
    memberOnly: number;
    /** The acting account; holds admin. */
    actor: number;
    owner: number;
    /** Not in the group. */
    stranger: number;
    /** Holds admin, like the acting account. */
    peer: number;
  };
  /** Role ids in ascending order of rank. At least one of `trainee`, `officer` and `captain` is above 2^32. */
  roles: {
    guest: number;
    base: number;
    trainee: number;
    officer: number;
    captain: number;
    /** The acting account's highest role. */
    admin: number;
    owner: number;
  };
  close(): Promise<void>;
}

export function platformContract(name: string, open: () => Promise<PlatformUnderTest>): void {
  describe(`${name} meets the platform contract`, () => {
    let underTest: PlatformUnderTest;
    beforeEach(async () => {
      underTest = await open();
    });
    afterEach(() => underTest.close());

    const readers = () => groupReaders(underTest);
    describeGroup(() => underTest);
    describeMembers(() => underTest, readers);
    describeLists(() => underTest);
    describeWrites(() => underTest, readers);
    describeRefusals(() => underTest, readers);
    describeLimits(() => underTest, readers);
  });
}

function describeGroup(underTest: () => PlatformUnderTest): void {
  test('the group is read with its id, name, size and owner', async () => {
    const { platform, call, ids } = underTest();
    const group = await platform.group(call());
    expect(group.id).toBeGreaterThan(0);
    expect(group.name).not.toBe('');
    expect(group.memberCount).toBeGreaterThan(0);
    expect(group.ownerId).toBe(ids.owner);
  });

  test('every role is listed once, by ascending rank and then by id, with the base role before others of its rank', async () => {
    const { platform, call, roles } = underTest();
    const listed = await platform.roles(call());
    const listedIds = listed.map((role) => role.id);
    expect(listedIds).toEqual(expect.arrayContaining(Object.values(roles)));
    expect(new Set(listedIds).size).toBe(listed.length);
    const isOther = ({ kind }: Role) => Number(kind !== 'base');
    expect(listed).toEqual([...listed].sort((a, b) => a.rank - b.rank || isOther(a) - isOther(b) || a.id - b.id));
    for (const role of listed) expect(role.name).not.toBe('');
  });

  test('the guest, base and owner roles are distinguished from custom roles', async () => {
    const { platform, call, roles } = underTest();
    const listed = await platform.roles(call());
    const idsOf = (kind: RoleKind) => listed.filter((role) => role.kind === kind).map((role) => role.id);
    expect(idsOf('guest')).toEqual([roles.guest]);
    expect(idsOf('base')).toEqual([roles.base]);
    expect(idsOf('owner')).toEqual([roles.owner]);
    expect(idsOf('custom')).toEqual(expect.arrayContaining([roles.trainee, roles.officer, roles.captain, roles.admin]));
  });

  test('the credential is valid, names the acting account, and can write', async () => {
    const { platform, call, ids } = underTest();
    const credential = await platform.checkCredential(call());
    expect(credential).toMatchObject({ state: 'valid', userId: ids.actor });
    expect(credential.canWrite).not.toBe(false);
  });
}

function describeMembers(underTest: () => PlatformUnderTest, readers: () => GroupReaders): void {
  test('a member is read with every role held', async () => {
    const { ids, roles } = underTest();
    const { held } = readers();
    expect(await held(ids.member)).toEqual([roles.trainee]);
    expect(await held(ids.officer)).toEqual([roles.officer]);
    expect(await held(ids.veteran)).toEqual(ascending([roles.trainee, roles.captain]));
    expect(await held(ids.memberOnly)).toEqual([]);
    expect(await held(ids.actor)).toEqual([roles.admin]);
    expect(await held(ids.peer)).toEqual([roles.admin]);
    expect(await held(ids.owner)).toEqual([roles.owner]);
  });

  test('a member has the requested id', async () => {
    const { platform, call, ids } = underTest();
    for (const userId of [ids.member, ids.officer, ids.memberOnly]) {
      expect((await platform.getMember(userId, call()))?.userId).toBe(userId);
    }
  });

  test('a read of a user who is not in the group returns undefined', async () => {
    const { platform, call, ids } = underTest();
    expect(await platform.getMember(ids.stranger, call())).toBeUndefined();
  });
}

function describeLists(underTest: () => PlatformUnderTest): void {
  test('a list contains every member with the role, or all members if no role is given', async () => {
    const { platform, call, ids, roles } = underTest();
    const { items, next } = await platform.membersWith({ roleId: roles.trainee }, call());
    expect(items).toEqual(expect.arrayContaining([ids.member, ids.veteran]));
    for (const other of [ids.officer, ids.memberOnly, ids.stranger]) expect(items).not.toContain(other);
    expect(next).toBeUndefined();
    const all = await platform.membersWith({ roleId: undefined }, call());
    const { stranger, ...members } = ids;
    expect(all.items).toEqual(expect.arrayContaining(Object.values(members)));
    expect(all.items).not.toContain(stranger);
  });

  test('a list rejects an invalid cursor', async () => {
    const { platform, call, roles } = underTest();
    const read = platform.membersWith({ roleId: roles.trainee, after: '%' }, call());
    await expect(read).rejects.toMatchObject({ code: 'platform_rejected' });
  });
}

function describeWrites(underTest: () => PlatformUnderTest, readers: () => GroupReaders): void {
  test('assigning adds a role, leaves the others, and returns the resulting member', async () => {
    const { platform, call, ids, roles } = underTest();
    const answered = await platform.assignRole({ userId: ids.member, roleId: roles.captain }, call());
    const wanted = ascending([roles.trainee, roles.captain]);
    expect(answered?.userId).toBe(ids.member);
    expect(withoutBase(underTest(), answered?.roleIds)).toEqual(wanted);
    await readers().expectHeld(ids.member, wanted);
  });

  test('assigning to a member with only the base role gives the first role', async () => {
    const { platform, call, ids, roles } = underTest();
    await platform.assignRole({ userId: ids.memberOnly, roleId: roles.trainee }, call());
    await readers().expectHeld(ids.memberOnly, [roles.trainee]);
  });

  test('assigning a role that the member holds changes nothing', async () => {
    const { platform, call, ids, roles } = underTest();
    const answered = await platform.assignRole({ userId: ids.veteran, roleId: roles.trainee }, call());
    const wanted = ascending([roles.trainee, roles.captain]);
    expect(withoutBase(underTest(), answered?.roleIds)).toEqual(wanted);
    await readers().expectHeld(ids.veteran, wanted);
  });

  test('unassigning takes one role, leaves the others, and returns the resulting member', async () => {
    const { platform, call, ids, roles } = underTest();
    const answered = await platform.unassignRole({ userId: ids.veteran, roleId: roles.captain }, call());
    expect(answered?.userId).toBe(ids.veteran);
    expect(withoutBase(underTest(), answered?.roleIds)).toEqual([roles.trainee]);
    await readers().expectHeld(ids.veteran, [roles.trainee]);
  });

  test('unassigning the last role leaves a member with the base role', async () => {
    const { platform, call, ids, roles } = underTest();
    const answered = await platform.unassignRole({ userId: ids.officer, roleId: roles.officer }, call());
    expect(withoutBase(underTest(), answered?.roleIds)).toEqual([]);
    await readers().expectHeld(ids.officer, []);
  });

  test('unassigning a role that the member lacks changes nothing', async () => {
    const { platform, call, ids, roles } = underTest();
    const answered = await platform.unassignRole({ userId: ids.member, roleId: roles.captain }, call());
    expect(withoutBase(underTest(), answered?.roleIds)).toEqual([roles.trainee]);
    await readers().expectHeld(ids.member, [roles.trainee]);
  });

  test('a reservation changes nothing, and a call can make more writes than it reserved', async () => {
    const { platform, call, ids, roles } = underTest();
    using reservation = await platform.reserve(['assign', 'unassign'], call());
    await readers().expectHeld(ids.member, [roles.trainee]);
    await platform.assignRole({ userId: ids.member, roleId: roles.officer }, { ...call(), reservation });
    await platform.unassignRole({ userId: ids.member, roleId: roles.trainee }, { ...call(), reservation });
    await platform.unassignRole({ userId: ids.member, roleId: roles.officer }, { ...call(), reservation });
    await readers().expectHeld(ids.member, []);
  });

  test('a write that its fence rejects is not sent, and fails with the same error', async () => {
    const { platform, call, ids, roles } = underTest();
    const fence = () => Promise.reject(new RankdError('conflict', 'Another node has taken the change over.'));
    const fenced = { ...call(), fence };
    await expectRefused(platform.assignRole({ userId: ids.member, roleId: roles.officer }, fenced), 'conflict');
    await expectRefused(platform.unassignRole({ userId: ids.member, roleId: roles.trainee }, fenced), 'conflict');
    await readers().expectHeld(ids.member, [roles.trainee]);
  });

  test('a write does not affect other members', async () => {
    const { platform, call, ids, roles } = underTest();
    await platform.assignRole({ userId: ids.member, roleId: roles.officer }, call());
    await platform.unassignRole({ userId: ids.member, roleId: roles.trainee }, call());
    const { held } = readers();
    expect(await held(ids.veteran)).toEqual(ascending([roles.trainee, roles.captain]));
    expect(await held(ids.officer)).toEqual([roles.officer]);
  });
}

function describeRefusals(underTest: () => PlatformUnderTest, readers: () => GroupReaders): void {
  test.each(['owner', 'actor', 'peer'] as const)(
    'a write to the %s is refused as above the acting account',
    async (who) => {
      const { ids, roles } = underTest();
      const before = await readers().held(ids[who]);
      await expectBothRefused(underTest(), { userId: ids[who], roleId: roles.trainee }, 'above_acting_account');
      expect(await readers().held(ids[who])).toEqual(before);
    },
  );

  test('the acting account cannot give its own highest role', async () => {
    const { platform, call, ids, roles } = underTest();
    const change = { userId: ids.member, roleId: roles.admin };
    await expectRefused(platform.assignRole(change, call()), 'above_acting_account');
    expect(await readers().held(ids.member)).toEqual([roles.trainee]);
  });

  test.each(['base', 'guest', 'owner'] as const)('the %s role can be neither given nor taken', async (kind) => {
    const { ids, roles } = underTest();
    const change = { userId: ids.member, roleId: roles[kind] };
    await expectBothRefused(underTest(), change, 'platform_rejected', 'above_acting_account');
    expect(await readers().held(ids.member)).toEqual([roles.trainee]);
  });

  test('a write to a user who is not in the group fails with member_not_found', async () => {
    const { platform, call, ids, roles } = underTest();
    await expectBothRefused(underTest(), { userId: ids.stranger, roleId: roles.trainee }, 'member_not_found');
    expect(await platform.getMember(ids.stranger, call())).toBeUndefined();
  });

  test('a write of a role that the group does not have fails with platform_rejected', async () => {
    const { ids, roles } = underTest();
    const unknown = Math.max(...Object.values(roles)) + 1;
    await expectBothRefused(underTest(), { userId: ids.member, roleId: unknown }, 'platform_rejected');
    expect(await readers().held(ids.member)).toEqual([roles.trainee]);
  });
}

function describeLimits(underTest: () => PlatformUnderTest, readers: () => GroupReaders): void {
  test('an aborted signal ends every call before anything is sent', async () => {
    const { platform, call, ids, roles } = underTest();
    const aborted = () => ({ ...call(), signal: AbortSignal.abort() });
    const codes = ['platform_busy', 'platform_unavailable'] as const;
    await expectRefused(platform.group(aborted()), ...codes);
    await expectRefused(platform.roles(aborted()), ...codes);
    await expectRefused(platform.getMember(ids.member, aborted()), ...codes);
    await expectRefused(platform.checkCredential(aborted()), ...codes);
    await expectRefused(platform.assignRole({ userId: ids.member, roleId: roles.officer }, aborted()), ...codes);
    await expectRefused(platform.unassignRole({ userId: ids.member, roleId: roles.trainee }, aborted()), ...codes);
    expect(await readers().held(ids.member)).toEqual([roles.trainee]);
  });

  test('user and role ids above 2^32 are read and written exactly', async () => {
    const { platform, call, ids, roles } = underTest();
    const userId = firstBig([ids.member, ids.officer, ids.veteran, ids.memberOnly]);
    const roleId = firstBig([roles.trainee, roles.officer, roles.captain]);
    const others = (await readers().held(userId)).filter((id) => id !== roleId);

    const assigned = await platform.assignRole({ userId, roleId }, call());
    expect(assigned?.userId).toBe(userId);
    expect(assigned?.roleIds).toContain(roleId);
    await readers().expectHeld(userId, ascending([...others, roleId]));

    await platform.unassignRole({ userId, roleId }, call());
    await readers().expectHeld(userId, others);
  });

  test('ids that differ only above 32 bits are distinguished', async () => {
    const { platform, call, ids, roles } = underTest();
    expect(await platform.getMember(ids.member + 2 ** 32, call())).toBeUndefined();
    const change = { userId: ids.member, roleId: roles.trainee + 2 ** 32 };
    await expectRefused(platform.unassignRole(change, call()), 'platform_rejected');
  });
}

interface GroupReaders {
  /** Reads a member's roles in ascending order, without the base role, which some platforms omit. */
  held(userId: number): Promise<number[]>;
  /** Waits until a read returns these roles, up to 250 ms longer than the platform's read lag. */
  expectHeld(userId: number, roleIds: number[]): Promise<void>;
}

function groupReaders(underTest: PlatformUnderTest): GroupReaders {
  const { platform, call } = underTest;
  const held = async (userId: number) => {
    const member = await platform.getMember(userId, call());
    if (member === undefined) throw new Error(`user ${userId} is not in the group`);
    return withoutBase(underTest, member.roleIds);
  };
  return {
    held,
    expectHeld: async (userId, roleIds) => {
      await expect.poll(() => held(userId), { timeout: platform.readLagMs + 250 }).toEqual(roleIds);
    },
  };
}

async function expectBothRefused({ platform, call }: PlatformUnderTest, change: RoleWrite, ...codes: ErrorCode[]) {
  await expectRefused(platform.assignRole(change, call()), ...codes);
  await expectRefused(platform.unassignRole(change, call()), ...codes);
}

async function expectRefused(answer: Promise<unknown>, ...codes: ErrorCode[]): Promise<void> {
  const error = await answer.then(
    () => 'no error',
    (thrown: unknown) => thrown,
  );
  expect(isRankdError(error) ? error.code : error).toBeOneOf(codes);
}

function withoutBase({ roles }: PlatformUnderTest, roleIds: number[] = []): number[] {
  return ascending(roleIds.filter((id) => id !== roles.base));
}

function ascending(ids: number[]): number[] {
  return [...ids].sort((a, b) => a - b);
}

function firstBig(ids: number[]): number {
  const big = ids.find((id) => id > 2 ** 32);
  if (big === undefined) throw new Error('the group under test has no id above 2^32 here');
  return big;
}
