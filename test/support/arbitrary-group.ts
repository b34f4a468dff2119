import fc from 'fast-check';
import type { Member, Role } from '../../src/core/model.ts';
import type { RoleScheme } from '../../src/core/role-scheme.ts';
import type { Policy } from '../../src/core/rules/rule.ts';

/** A policy that refuses nothing. */
export const openPolicy: Policy = {
  ...{ minRank: 1, maxRank: 254, lockedRoles: [], privilegedRoles: 'allow', protectedMembers: [], protectedRoles: [] },
  ...{ steps: 'any', selfRank: 'allow', rankerCheck: 'off', minRankerRank: 1, reason: 'optional' },
  ...{ cooldowns: [], rankerCooldownMs: 0 },
};

/**
 * A member of a group, and a role to request for the member: the base role, or a custom one (from the ladder, if there
 * is one).
 */
export interface RankCase {
  scheme: RoleScheme;
  member: Member;
  target: Role;
}

/** Role ids exceed 32 bits, as some do on Roblox. */
const roleId = fc.integer({ min: 2 ** 32 + 1, max: Number.MAX_SAFE_INTEGER });

/** Draws half of the ranks from a small range, so that ranks often collide, even with that of the base role. */
const customRank = fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 254 }));

const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 });

/**
 * A group's roles, sorted by rank: guest, base, owner and up to 38 custom roles. Custom roles can share a rank with
 * each other, and with the base role.
 */
export const arbitraryRoles: fc.Arbitrary<Role[]> = fc
  .record({
    ids: fc.uniqueArray(roleId, { minLength: 41, maxLength: 41 }),
    customs: fc.array(fc.record({ rank: customRank, name }), { maxLength: 38 }),
  })
  .map(({ ids, customs }) => {
    const unnumbered: Array<Omit<Role, 'id'>> = [
      { name: 'Guest', rank: 0, kind: 'guest' },
      { name: 'Member', rank: 1, kind: 'base' },
      { name: 'Owner', rank: 255, kind: 'owner' },
      ...customs.map((custom) => ({ ...custom, kind: 'custom' as const })),
    ];
    const roles = unnumbered.map((role, index): Role => ({ ...role, id: ids[index] ?? 0 }));
    const isBase = ({ kind }: Role) => Number(kind === 'base');
    return roles.sort((a, b) => a.rank - b.rank || isBase(b) - isBase(a) || a.id - b.id);
  });

/** Generates ladders: custom roles with distinct ranks, in ascending order. */
export function arbitraryLadder(roles: Role[]): fc.Arbitrary<Role[]> {
  return fc.subarray(customsOf(roles)).map((some) => some.filter((role, index) => role.rank !== some[index - 1]?.rank));
}

/**
 * Generates members with any custom roles, and sometimes the base role, the guest role or roles that the group does not
 * list.
 */
function arbitraryMember(roles: Role[]): fc.Arbitrary<Member> {
  const rest = roles.filter((role) => role.kind === 'base' || role.kind === 'guest');
  return fc
    .record({
      userId: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
      customs: fc.subarray(customsOf(roles)),
      rest: fc.subarray(rest),
      unknown: fc.array(fc.integer({ min: 300, max: 2 ** 32 }), { maxLength: 2 }),
    })
    .map(({ userId, customs, rest, unknown }) => ({
      userId,
      roleIds: [...unknown, ...[...customs, ...rest].map((role) => role.id).reverse()],
    }));
}

export function arbitraryRankCase({ ladder }: { ladder: boolean }): fc.Arbitrary<RankCase> {
  return arbitraryRoles.chain((roles) =>
    (ladder ? arbitraryLadder(roles) : fc.constant(undefined)).chain((steps) =>
      fc.record({
        scheme: fc.record<RoleScheme>({
          roles: fc.constant(roles),
          ladder: fc.constant(steps),
          rankOne: fc.constantFrom('custom', 'base'),
        }),
        member: arbitraryMember(roles),
        target: fc.constantFrom(baseOf(roles), ...(steps ?? customsOf(roles))),
      }),
    ),
  );
}

export function baseOf(roles: Role[]): Role {
  const base = roles.find((role) => role.kind === 'base');
  if (base === undefined) throw new Error('a group without a base role');
  return base;
}

export function customsOf(roles: Role[]): Role[] {
  return roles.filter((role) => role.kind === 'custom');
}
