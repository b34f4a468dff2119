import { describe, expect, test } from 'vitest';
import type { Role } from '../../src/core/model.ts';
import { isRank, type RoleName } from '../../src/core/role-scheme.ts';
import {
  judgeAlarms,
  judgeMeanings,
  keyEntries,
  ladderOf,
  type NamingSettings,
  type RoleEntry,
  type RoleMeaning,
  type RoleSetting,
  refusalOfMisfit,
  resolveRoles,
  roleEntries,
} from '../../src/core/role-settings.ts';

const id = 5_120;
const otherId = 5_015;
const group: Role[] = [
  { id: 5_000, name: 'Guest', rank: 0, kind: 'guest' },
  { id: 5_001, name: 'Member', rank: 1, kind: 'base' },
  { id: otherId, name: 'VIP', rank: 15, kind: 'custom' },
  { id: 5_050, name: 'Officer', rank: 50, kind: 'custom' },
  { id, name: 'Developer', rank: 120, kind: 'custom' },
  { id: 5_255, name: 'Owner', rank: 255, kind: 'owner' },
];
const none: NamingSettings = {
  ...{ ladder: undefined, suspensionRole: undefined, lockedRoles: [], privilegedRoles: 'allow', protectedRoles: [] },
  ...{ maxRank: 254, minRank: 1 },
};
const actor = { by: 'daemon', at: 1 };

/**
 * For each setting that names roles, a value with an entry for the Developer, in most lists along with another entry.
 */
const settings: Record<RoleSetting, (entry: RoleName) => Partial<NamingSettings>> = {
  'group.ladder': (entry) => ({ ladder: [50, entry] }),
  'policy.locked_roles': (entry) => ({ lockedRoles: ['Officer', entry] }),
  'policy.privileged_roles': (entry) => ({ privilegedRoles: [entry] }),
  'policy.protected_roles': (entry) => ({ protectedRoles: [entry, 5_050] }),
  'policy.suspension.role': (entry) => ({ suspensionRole: entry }),
  'policy.max_rank': (entry) => ({ maxRank: entry }),
  'policy.min_rank': (entry) => ({ minRank: entry }),
};
const forms = { number: 120, name: 'Developer', id } as const;
type Form = keyof typeof forms;

interface RoleChange {
  after: Role[];
  /** The forms of the entry that no longer identify the role afterwards. */
  misfits: Form[];
}

const roles = (change: (role: Role) => Role[]) => sorted(group.flatMap(change));
const sorted = (list: Role[]) => list.toSorted((one, other) => one.rank - other.rank);
const changed = (changes: Record<number, Partial<Role>>) => roles((role) => [{ ...role, ...changes[role.id] }]);
const second = (like: Partial<Role>): Role => ({ id: 5_999, name: 'Helper', rank: 77, kind: 'custom', ...like });
const without = group.filter((role) => role.id !== id);

/** Changes that the group's managers can make to roles on Roblox. */
const roleChanges: Record<string, RoleChange> = {
  'left alone': { after: group, misfits: [] },
  renumbered: { after: changed({ [id]: { rank: 125 } }), misfits: ['number'] },
  renamed: { after: changed({ [id]: { name: 'Engineer' } }), misfits: ['name'] },
  'renumbered and renamed': {
    after: changed({ [id]: { rank: 125, name: 'Engineer' } }),
    misfits: ['number', 'name'],
  },
  'respelled with other capitals and blanks': { after: changed({ [id]: { name: ' DEVELOPER' } }), misfits: [] },
  deleted: { after: without, misfits: ['number', 'name', 'id'] },
  'deleted, and replaced by another with its number and name': {
    after: sorted([...without, second({ rank: 120, name: 'Developer' })]),
    misfits: ['number', 'name', 'id'],
  },
  'swapped with another by number': {
    after: changed({ [id]: { rank: 15 }, [otherId]: { rank: 120 } }),
    misfits: ['number'],
  },
  'swapped with another by name': {
    after: changed({ [id]: { name: 'VIP' }, [otherId]: { name: 'Developer' } }),
    misfits: ['name'],
  },
  'swapped with another by number and name': {
    after: changed({ [id]: { name: 'VIP', rank: 15 }, [otherId]: { name: 'Developer', rank: 120 } }),
    misfits: ['number', 'name'],
  },
  'joined by a second role of its rank': { after: sorted([...group, second({ rank: 120 })]), misfits: ['number'] },
  'joined by a second role of its name': {
    after: sorted([...group, second({ name: 'developer' })]),
    misfits: ['name'],
  },
};

const gone = { lists: null, 'policy.suspension.role': 'suspensions', bounds: 'everything' } as const;

function stopsIfGone(setting: RoleSetting) {
  if (setting === 'policy.suspension.role') return gone[setting];
  return setting === 'policy.max_rank' || setting === 'policy.min_rank' ? gone.bounds : gone.lists;
}

const cells = (Object.keys(settings) as RoleSetting[]).flatMap((setting) =>
  (Object.keys(forms) as Form[])
    .filter((form) => form === 'name' || !setting.endsWith('_rank')) // a number bounds ranks rather than naming a role
    .flatMap((form) =>
      Object.entries(roleChanges).map(([change, { after, misfits }]) => ({ setting, form, change, after, misfits })),
    ),
);

function read(given: Partial<NamingSettings>, from: Role[], meanings: readonly RoleMeaning[] = []) {
  return resolveRoles({ roles: from, rankOne: 'custom' }, roleEntries({ ...none, ...given }), meanings);
}

describe('an entry means the role that it named when it was first resolved', () => {
  test.each(cells)('$setting by $form, after the role is $change', ({ setting, form, after, misfits }) => {
    const given = settings[setting](forms[form]);
    const first = read(given, group);
    expect(first.misfits).toEqual([]);
    const isDeleted = !after.some((role) => role.id === id);

    const now = read(given, after, first.newMeanings);
    const others = first.named[setting].flatMap((role) => (role.id === id ? [] : [role.id]));
    const meant = [...others, ...(isDeleted ? [] : [id])];
    expect(new Set(now.named[setting].map((role) => role.id))).toEqual(new Set(meant));
    expect(now.newMeanings).toEqual([]); // no entry gets a new meaning

    const found = now.misfits.find(({ entry }) => entry === String(forms[form]));
    expect(now.misfits).toEqual(misfits.includes(form) ? [found] : []);
    if (found === undefined) return;
    expect(found).toMatchObject({ setting, isUnread: false, stops: isDeleted ? stopsIfGone(setting) : null });
    expect(found.message).toContain(setting);
    expect(found.message).toContain(String(forms[form]));

    // The line that the fix suggests names the same roles, and has no misfit.
    const line = / write (\w+): (.*?) and run: rankd reload/.exec(found.fix);
    if (line === null) expect([isDeleted, meant.length === 0]).toEqual([true, true]);
    else {
      expect(setting.endsWith(`.${line[1]}`)).toBe(true);
      const value = JSON.parse(line[2] ?? '') as RoleName | RoleName[];
      const entries = [value].flat().map((entry): RoleEntry => ({ setting, entry }));
      const kept = first.newMeanings.filter((one) => one.entry !== String(forms[form]));
      if (setting.endsWith('_rank') && entries.some(({ entry }) => isRank(entry))) return; // a bound without a role
      const corrected = resolveRoles({ roles: after, rankOne: 'custom' }, entries, kept);
      expect(corrected.misfits).toEqual([]);
      expect(new Set(corrected.named[setting].map((role) => role.id))).toEqual(new Set(meant));
    }

    // A misfit raises one alarm, and later one event when the setting fits again.
    const alarm = judged(judgeAlarms(now.misfits, actor), first.newMeanings);
    expect(alarm.events).toMatchObject([{ action: 'configuration.drift', subject: setting }]);
    expect(judged(judgeAlarms(now.misfits, actor), alarm.change).events).toEqual([]);
    const back = judged(judgeAlarms(read(given, group, alarm.change).misfits, actor), alarm.change);
    expect(back.events).toMatchObject([{ action: 'configuration.fit', subject: setting }]);
    expect(back.change).toEqual(first.newMeanings);
  });
});

function judged(judge: ReturnType<typeof judgeAlarms>, stored: RoleMeaning[]) {
  const verdict = judge(stored);
  if ('refusal' in verdict) throw verdict.refusal;
  return verdict;
}

describe('an entry that could never be resolved', () => {
  test.each(Object.keys(settings) as RoleSetting[])('raises an alarm: %s', (setting) => {
    const { misfits, newMeanings } = read(settings[setting]('Astronaut'), group);
    expect(misfits).toMatchObject([{ setting, entry: 'Astronaut', isUnread: true }]);
    expect(misfits[0]?.message).toBe(`${setting} does not fit the group: no role in the group is called "Astronaut".`);
    expect(misfits[0]?.stops).not.toBeNull(); // otherwise, an ineffective guard would go unnoticed
    expect(newMeanings.some(({ entry }) => entry === 'Astronaut')).toBe(false);
  });

  test('is resolved once such a role exists, which ends the alarm', () => {
    const given = { lockedRoles: ['Helper'] };
    const alarmed = judged(judgeAlarms(read(given, group).misfits, actor), []);
    expect(alarmed).toMatchObject({
      change: [{ entry: 'Helper', roles: [] }],
      events: [{ action: 'configuration.drift' }],
    });
    const { newMeanings, misfits } = read(given, [...group, second({})], alarmed.change);
    expect(misfits).toEqual([]);
    const resolved = {
      entries: roleEntries({ ...none, ...given }),
      newMeanings,
      isRenewed: () => false,
      prunes: false,
    };
    expect(judged(judgeMeanings(resolved, actor), alarmed.change)).toMatchObject({
      change: [{ entry: 'Helper', roles: [{ id: 5_999 }], alarm: null }],
      events: [{ action: 'configuration.fit' }],
    });
  });
});

describe('a change is refused only if it depends on a missing role', () => {
  const refused = (given: Partial<NamingSettings>, after: Role[]) => {
    const now = read(given, after, read(given, group).newMeanings);
    return (['ranks', 'suspensions', 'everything'] as const).filter((of) => refusalOfMisfit(now, of) !== undefined);
  };

  test.each<[string, Partial<NamingSettings>, string[]]>([
    ['a locked role', { lockedRoles: [120] }, []],
    ['a protected role', { protectedRoles: ['Developer'] }, []],
    ['one rung of several', { ladder: [50, 120] }, []],
    ['the only rung', { ladder: ['Developer'] }, ['ranks']],
    ['the role of suspended members', { suspensionRole: 'Developer' }, ['suspensions']],
    ['the ceiling', { maxRank: 'Developer' }, ['ranks', 'suspensions', 'everything']],
  ])('the missing role is %s', (_, given, kinds) => {
    expect(refused(given, without)).toEqual(kinds);
    expect(refused(given, group)).toEqual([]);
  });

  test('the refusal names the missing role and recommends rankd doctor', () => {
    const given = { suspensionRole: 'Developer' };
    expect(refusalOfMisfit(read(given, without, read(given, group).newMeanings), 'suspensions')).toMatchObject({
      code: 'configuration_misfit',
      message: `policy.suspension.role names "Developer", which was Developer (role id ${id}): Roblox no longer lists that role, so no member can be suspended. The operator can correct this: rankd doctor.`,
    });
  });
});

describe('the ladder', () => {
  const rungs = (given: Partial<NamingSettings>, after: Role[], meanings: readonly RoleMeaning[] = []) =>
    ladderOf(roleEntries({ ...none, ...given }), read(given, after, meanings))?.map(({ name }) => name);

  test('follows the current order of ranks, without the base role and deleted rungs', () => {
    const given = { ladder: [1, 15, 50, 120] };
    const { newMeanings } = read(given, group);
    expect(rungs(given, group)).toEqual(['VIP', 'Officer', 'Developer']);
    expect(rungs(given, changed({ [id]: { rank: 20 } }), newMeanings)).toEqual(['VIP', 'Developer', 'Officer']);
    expect(rungs(given, without, newMeanings)).toEqual(['VIP', 'Officer']);
    expect(rungs({}, group)).toBeUndefined();
  });

  test('remains in effect if two rungs come to share a rank, and the clash is reported', () => {
    const given = { ladder: ['Officer', 'Developer'] };
    const after = changed({ [id]: { rank: 50 } });
    const { misfits } = read(given, after, read(given, group).newMeanings);
    expect(misfits).toMatchObject([{ setting: 'group.ladder', stops: null, isUnread: false }]);
    expect(misfits[0]?.message).toContain('two of its roles share rank 50');
    expect(read(given, after).misfits).toMatchObject([{ stops: 'ranks', isUnread: true }]);
  });

  test('with two rungs that swapped numbers is reported, with the ids to write instead', () => {
    const given = { ladder: [50, 120] };
    const after = changed({ [id]: { rank: 50 }, 5050: { rank: 120 } });
    const { misfits, named } = read(given, after, read(given, group).newMeanings);
    expect(named['group.ladder'].map((role) => role.id)).toEqual([id, 5_050]);
    expect(misfits).toHaveLength(2);
    expect(misfits[0]?.fix).toContain(`ladder: [5050, ${id}]`);
  });

  test('reports nothing about a role that may be the base role', () => {
    const old = sorted([...group, { id: 5_002, name: 'Recruit', rank: 1, kind: 'custom' as const }]);
    const unclear = old.map((role): Role => (role.rank === 1 ? { ...role, kind: 'unclear' } : role));
    const given = { ladder: [1, 50] };
    expect(read(given, unclear).newMeanings.map(({ entry }) => entry)).toEqual(['50']);
    const { newMeanings } = read(given, old);
    const now = read(given, unclear, newMeanings);
    expect([now.misfits, now.named['group.ladder'].map((role) => role.id)]).toEqual([[], [5_002, 5_050]]);
  });
});

describe('the stored meanings of entries', () => {
  const entries = roleEntries({ ...none, lockedRoles: [120, 50] });
  const { newMeanings } = resolveRoles({ roles: group, rankOne: 'custom' }, entries, []);
  const otherwise = newMeanings.map((one) => ({ ...one, roles: [{ id: otherId, name: 'VIP', rank: 15 }] }));
  const old: RoleMeaning = {
    setting: 'policy.locked_roles',
    entry: '99',
    roles: [{ id, name: 'x', rank: 99 }],
    alarm: 'x',
  };
  const storedMeanings = (stored: RoleMeaning[], isRenewed: (one: { entry: string }) => boolean, prunes: boolean) =>
    judged(judgeMeanings({ entries, newMeanings, isRenewed, prunes }, actor), stored);

  test('the first daemon to resolve an entry decides its meaning', () => {
    expect(storedMeanings(otherwise, () => false, true).change).toEqual(otherwise);
  });

  test('an entry that is resolved again replaces its stored meaning and no other', () => {
    const { change } = storedMeanings(otherwise, ({ entry }) => entry === '120', true);
    expect(new Map(change.map((one) => [one.entry, one.roles[0]?.id]))).toEqual(
      new Map([
        ['120', id],
        ['50', otherId],
      ]),
    );
  });

  test('a removed entry is deleted, with an event if an alarm reported it, unless other daemons may still use it', () => {
    expect(storedMeanings([old], () => false, true)).toMatchObject({ events: [{ action: 'configuration.fit' }] });
    expect(storedMeanings([old], () => false, true).change).toEqual(newMeanings);
    expect(storedMeanings([old], () => false, false)).toEqual({ change: [old, ...newMeanings], events: [] });
  });
});

test("a missing role in a key's bound is reported, and a number as the bound needs no role", () => {
  const entries = keyEntries([{ name: 'game', maxRankRole: id }, { name: 'shop' }]);
  const { newMeanings } = resolveRoles({ roles: group, rankOne: 'custom' }, entries, []);
  const after = (roles: Role[]) => resolveRoles({ roles, rankOne: 'custom' }, entries, newMeanings).misfits;
  expect(after(changed({ [id]: { rank: 20, name: 'Engineer' } }))).toEqual([]);
  expect(after(without)).toMatchObject([
    {
      message: `the max_rank of key game names ${id}, which was Developer (role id ${id}): Roblox no longer lists that role, so the key can't change any rank.`,
      fix: 'rankd key set game --max-rank RANK',
      stops: null,
    },
  ]);
  expect([isRank(254), isRank(256), isRank('Developer')]).toEqual([true, false, false]);
});
