import { describe, expect, test } from 'vitest';
import { isRankdError } from '../../src/base/errors.ts';
import type { Role } from '../../src/core/model.ts';
import { type PolicySettings, policyFor, strayNames } from '../../src/core/policy-names.ts';
import type { RoleScheme } from '../../src/core/role-scheme.ts';
import { resolveRoles, roleEntries } from '../../src/core/role-settings.ts';
import { resolveTarget } from '../../src/core/target.ts';
import { isUserName } from '../../src/core/user-ref.ts';
import { openPolicy } from '../support/arbitrary-group.ts';

const longName = 'x'.repeat(100);
const titles: Array<[number, string, Role['kind']?]> = [
  [0, 'Guest', 'guest'],
  [1, 'Member', 'base'],
  [10, 'Trainee'],
  [20, 'Head-Admin'],
  [30, 'Head Admin'],
  [40, 'The "Boss"'],
  [50, '🦊 Fox'],
  [60, longName],
  [70, 'Café'],
  [80, 'VIP'],
  [81, 'vip'],
  [90, '42'],
  [255, 'Owner', 'owner'],
];
const roles = titles.map(([rank, name, kind = 'custom']): Role => ({ id: 70_000 + rank, name, rank, kind }));
const scheme: RoleScheme = { roles, ladder: undefined, rankOne: 'custom' };

function rankOf(name: string | number, of = scheme): number | string {
  try {
    return resolveTarget(of, name).rank;
  } catch (error) {
    if (!isRankdError(error)) throw error;
    return `${error.code}: ${error.message}`;
  }
}

describe('the name of a role', () => {
  test.each([
    ['trainee', 10],
    ['  TRAINEE ', 10],
    ['Head Admin', 30],
    ['head-admin', 20],
    ['the_"boss"', 40],
    ['🦊 fox', 50],
    [longName, 60],
    ['Cafe\u0301', 70],
    ['member', 1],
  ])('%s means rank %d: case, blanks and the encoding of accents do not matter', (name, rank) => {
    expect(rankOf(name)).toBe(rank);
  });

  test('of two roles is refused, with the ids of both', () => {
    expect(rankOf('VIP')).toMatch(/^ambiguous_name: .*70080 \(VIP\), 70081 \(vip\)/);
    expect(rankOf('headadmin')).toMatch(/^ambiguous_name: .*70020 \(Head-Admin\), 70030 \(Head Admin\)/);
  });

  test('of no role is refused, with the closest name and a list of the roles', () => {
    expect(rankOf('Trainie')).toMatch(
      /^unknown_rank: The group has no role "Trainie". Did you mean Trainee \(rank 10\)\? Choose one of 1 \(Member\)/,
    );
    expect(rankOf('Astronaut')).not.toMatch(/Did you mean/);
  });

  const decorated = [
    [10, '🔰 | Trainee'],
    [20, 'Sergeant'],
    [30, 'Sergeant Major'],
    [40, '[O-1] Officer'],
    [50, '[O-2] Senior Officer'],
    [60, 'Captain ⭐️'],
    [70, '[20+]Proximity Private'],
    [80, '𝓥𝓲𝓬𝓮 President'],
  ] as const;
  const group: RoleScheme = {
    roles: decorated.map(([rank, name]): Role => ({ id: 70_000 + rank, name, rank, kind: 'custom' })),
    ladder: undefined,
    rankOne: 'custom',
  };

  test.each([
    ['Trainee', 10],
    ['🔰 | trainee', 10],
    ['sergeant', 20],
    ['Sergeant  Major', 30],
    ['sergeantmajor', 30],
    ['major', 30],
    ['O1 Officer', 40],
    ['o-1 officer', 40],
    ['senior officer', 50],
    ['captain', 60],
    ['Captain ⭐', 60],
    ['Proximity Private', 70],
    ['vice president', 80],
  ])('%s means rank %d: badges and other decoration do not matter', (name, rank) => {
    expect(rankOf(name, group)).toBe(rank);
  });

  test('that is part of two names is refused with both, and part of a word matches no name', () => {
    expect(rankOf('officer', group)).toMatch(
      /^ambiguous_name: .*70040 \(\[O-1\] Officer\), 70050 \(\[O-2\] Senior Officer\)/,
    );
    expect(rankOf('cap', group)).toMatch(/^unknown_rank/);
    expect(rankOf('⭐', group)).toMatch(/^unknown_rank/);
  });

  test('that is misspelled is refused with the closest name, whatever its badge', () => {
    expect(rankOf('Capitain', group)).toMatch(/Did you mean Captain ⭐️ \(rank 60\)\?/);
    expect(rankOf('senior oficer', group)).toMatch(/Did you mean \[O-2\] Senior Officer/);
  });

  test('of a role off the ladder never means a similar role on the ladder', () => {
    const [, sergeant, major] = group.roles;
    const ladder = [major as Role];
    expect(rankOf('sergeant', { ...group, ladder })).toMatch(
      /^rank_not_allowed: "Sergeant" is not on the promotion ladder/,
    );
    expect(rankOf('major', { ...group, ladder })).toBe(30);
    expect(sergeant?.name).toBe('Sergeant');
  });

  test('in a setting must be the whole name, so that a lock never applies to another role by accident', () => {
    const settings = { lockedRoles: ['officer'], privilegedRoles: 'allow', protectedRoles: [] } as const;
    expect(
      strayNames(group.roles, { ...settings, lockedRoles: [...settings.lockedRoles], protectedRoles: [] }),
    ).toEqual([]);
  });

  test('of the guest role, the owner role, a private role or a role off the ladder is refused, like its number', () => {
    expect(rankOf('guest')).toMatch(/^rank_not_allowed: "Guest" is the guest role/);
    expect(rankOf('OWNER')).toMatch(/^rank_not_allowed: "Owner" has the rank of the owner role/);
    const council: Role = { ...(roles[2] as Role), id: 70_099, name: 'Council', kind: 'private' };
    const withPrivate = { ...scheme, roles: [...roles, council] };
    expect(rankOf('council', withPrivate)).toMatch(/^rank_not_allowed: "Council" is a private role/);
    const ladder = roles.filter(({ rank }) => rank === 10 || rank === 30);
    expect(rankOf('Café', { ...scheme, ladder })).toMatch(/^rank_not_allowed: "Café" is not on the promotion ladder/);
  });

  test('can consist of digits, but a number is never a name', () => {
    expect(rankOf(42)).toMatch(/^unknown_rank/);
    expect(rankOf(70_090)).toBe(90);
  });
});

const settings: PolicySettings = {
  ...openPolicy,
  privilegedRoles: 'allow',
  lockedRoles: [],
  protectedRoles: [],
  stale: 'ignore',
};

describe('a role name that two roles share', () => {
  test('applies to both in a policy list, and is reported', () => {
    const named: PolicySettings = { ...settings, lockedRoles: ['vip', 10], privilegedRoles: ['head admin'] };
    const found = resolveRoles(scheme, roleEntries({ ...named, ladder: undefined, suspensionRole: undefined }), []);
    expect(policyFor(found, named)).toMatchObject({
      lockedRoles: [70_010, 70_080, 70_081],
      privilegedRoles: [70_030],
    });
    expect(strayNames(roles, named)).toEqual([
      'policy.locked_roles names "vip", and 2 roles have that name: it means all of them, 70080 (VIP), 70081 (vip)',
    ]);
  });

  test('is reported in a ladder, with both role ids', () => {
    const { misfits } = resolveRoles(scheme, [{ setting: 'group.ladder', entry: 'vip' }], []);
    expect(misfits[0]?.message).toMatch(/"vip" is the name of both role 70080 and role 70081; use the role id/);
  });
});

test('a user name has 3 to 20 letters, digits and underscores: look-alikes and display names are not user names', () => {
  for (const name of ['Bob', '__proto__', 'a'.repeat(20), '123'])
    expect([name, isUserName(name)]).toEqual([name, true]);
  for (const name of ['', 'Al', 'a'.repeat(21), 'B\u043eb', 'Bob\u200b', 'Bob Ross', 'Bób', 'Bob\n', 'ＢＯＢ'])
    expect([name, isUserName(name)]).toEqual([name, false]);
});
