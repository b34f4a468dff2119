import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isRankdError, RankdError } from '../../src/base/errors.ts';
import { listRoles } from '../../src/core/describe.ts';
import type { Member, Role, RoleKind } from '../../src/core/model.ts';
import {
  isReached,
  type RolePlan,
  restorePlan,
  rise,
  rolePlan,
  suspensionPlan,
  takesAway,
} from '../../src/core/role-plan.ts';
import {
  givableRoles,
  heightOf,
  heldIds,
  heldRoles,
  highestRole,
  nameForRequest,
  type RoleScheme,
  roleIds,
} from '../../src/core/role-scheme.ts';
import { ladderOf, resolveRoles } from '../../src/core/role-settings.ts';
import { isNamed } from '../../src/core/rules/rule.ts';
import type { Step } from '../../src/core/steps.ts';
import { neighbor, nextRole, resolveTarget, suspendedRole } from '../../src/core/target.ts';
import {
  arbitraryLadder,
  arbitraryRankCase,
  arbitraryRoles,
  baseOf,
  customsOf,
  type RankCase,
} from '../support/arbitrary-group.ts';

/**
 * Roblox's role ids exceed 32 bits, so a role's id is this number plus its rank. The second role with rank 70 has the
 * next id.
 */
const idBase = 3 * 2 ** 32;

const withLadder = arbitraryRankCase({ ladder: true });
const withoutLadder = arbitraryRankCase({ ladder: false });

describe.each([
  ['with a ladder', withLadder],
  ['without a ladder', withoutLadder],
])('a plan %s', (_, arbitrary) => {
  test('leaves the target as the highest role', () => {
    holds(arbitrary, ({ scheme, member, target }) => {
      const plan = rolePlan(scheme, member, target);
      const counted = managed(scheme).filter((role) => stateAfter(member, plan.steps).has(role.id));
      expect(Math.max(0, ...counted.map((role) => role.rank))).toBe(heightOf(target));
      expect(target.kind === 'base' || counted.includes(target)).toBe(true);
    });
  });

  test('counts as taking away only if the member loses a role without rising', () => {
    holds(arbitrary, ({ scheme, member, target }) => {
      const plan = rolePlan(scheme, member, target);
      const after = stateAfter(member, plan.steps);
      const hasLost = heldRoles(scheme.roles, member).some(({ id, kind }) => kind !== 'base' && !after.has(id));
      expect(takesAway(plan)).toBe(hasLost && rise(plan) <= 0);
      if (rise(plan) < 0) expect(takesAway(plan)).toBe(true);
    });
  });

  test('can be undone exactly, whatever roles were held before, and only those roles count as restored', () => {
    holds(arbitrary, ({ scheme, member, target }) => {
      const { goal, steps } = rolePlan(scheme, member, target);
      const changed = { ...member, roleIds: [...stateAfter(member, steps)] };
      const back = restorePlan(scheme, changed, goal.from);
      const restored = { ...member, roleIds: [...stateAfter(changed, back.steps)] };
      expect(heldIds(scheme.roles, restored)).toEqual(goal.from);
      const highest = managed(scheme).filter((role) => back.goal.to.includes(role.id));
      expect(heightOf(back.target)).toBe(Math.max(0, ...highest.map((role) => role.rank)));
      expect(givableRoles(scheme)).toContain(back.target);
      const undo = { undoOf: 'chg_1', roleId: back.target.id, rolesAfter: back.goal.to };
      expect(isReached(scheme, undo, restored)).toBe(true);
      expect(isReached(scheme, undo, changed)).toBe(steps.length === 0);
      expect(isReached(scheme, { roleId: target.id, rolesAfter: goal.to }, changed)).toBe(true);
      for (const role of customsOf(scheme.roles)
        .filter(({ id }) => !goal.from.includes(id))
        .slice(0, 2)) {
        expect(isReached(scheme, undo, { ...restored, roleIds: [...restored.roleIds, role.id] })).toBe(false);
      }
    });
  });

  test('counts as reached at the target rank, whatever other roles may remain, and never for a role that does not exist', () => {
    holds(arbitrary, ({ scheme, member, target }) => {
      const { goal, steps } = rolePlan(scheme, member, target);
      const changed = { ...member, roleIds: [...stateAfter(member, steps)] };
      expect(isReached(scheme, { roleId: 256, rolesAfter: goal.to }, changed)).toBe(false);
      for (const role of customsOf(scheme.roles)) {
        const more = { ...changed, roleIds: [...new Set([...changed.roleIds, role.id])] };
        const isBelow = target.kind !== 'base' && role.rank <= target.rank;
        const mayStay = scheme.ladder === undefined ? isBelow : !scheme.ladder.includes(role) || role === target;
        expect(isReached(scheme, { roleId: target.id, rolesAfter: goal.to }, more)).toBe(mayStay);
      }
    });
  });

  test('reports the highest previous role: a held role that counts, or else the base role', () => {
    holds(arbitrary, ({ scheme, member, target }) => {
      const counted = managed(scheme).filter((role) => member.roleIds.includes(role.id));
      const { highestBefore } = rolePlan(scheme, member, target);
      expect([baseOf(scheme.roles), ...counted]).toContain(highestBefore);
      expect(heightOf(highestBefore)).toBe(Math.max(0, ...counted.map((role) => role.rank)));
    });
  });

  test('gives before it takes, and gives at most one role', () => {
    holds(arbitrary, ({ scheme, member, target }) => {
      const { steps } = rolePlan(scheme, member, target);
      expect(steps.slice(1).every((step) => step.kind === 'unassign')).toBe(true);
    });
  });

  test('never leaves the member without a counting role, unless the base role is the target', () => {
    holds(arbitrary, ({ scheme, member, target }) => {
      if (target.kind === 'base') return;
      const { steps } = rolePlan(scheme, member, target);
      for (let taken = 1; taken <= steps.length; taken++) {
        const state = stateAfter(member, steps.slice(0, taken));
        expect(managed(scheme).some((role) => state.has(role.id))).toBe(true);
      }
    });
  });

  test('writes only counting roles, and takes only roles that are held', () => {
    holds(arbitrary, ({ scheme, member, target }) => {
      const writable = new Set(managed(scheme).map((role) => role.id));
      for (const { kind, roleId } of rolePlan(scheme, member, target).steps) {
        expect(writable.has(roleId)).toBe(true);
        expect(member.roleIds.includes(roleId)).toBe(kind === 'unassign');
      }
    });
  });

  test('never touches a role that the group does not list, and expects it to remain', () => {
    holds(arbitrary, ({ scheme, member, target }) => {
      const isUnknown = (id: number) => !scheme.roles.some((role) => role.id === id);
      const unlisted = ascending([...new Set(member.roleIds.filter(isUnknown))]);
      for (const { steps, goal } of [rolePlan(scheme, member, target), suspensionPlan(scheme, member, target)]) {
        expect(steps.map(({ roleId }) => roleId).filter(isUnknown)).toEqual([]);
        expect([goal.from.filter(isUnknown), goal.to.filter(isUnknown)]).toEqual([unlisted, unlisted]);
      }
    });
  });

  test('is empty once it has been carried out', () => {
    holds(arbitrary, ({ scheme, member, target }) => {
      const { steps } = rolePlan(scheme, member, target);
      const result = { ...member, roleIds: [...stateAfter(member, steps)] };
      expect(rolePlan(scheme, result, target).steps).toEqual([]);
    });
  });

  test('is the same whether the platform lists the base role or not', () => {
    holds(arbitrary, ({ scheme, member, target }) => {
      const baseId = baseOf(scheme.roles).id;
      const without = member.roleIds.filter((id) => id !== baseId);
      const listed = rolePlan(scheme, { ...member, roleIds: [...without, baseId] }, target);
      expect(listed).toEqual(rolePlan(scheme, { ...member, roleIds: without }, target));
    });
  });

  test('names all roles before and after, including the base role', () => {
    holds(arbitrary, ({ scheme, member, target }) => {
      const { goal, steps } = rolePlan(scheme, member, target);
      const guest = scheme.roles.find(({ kind }) => kind === 'guest');
      const baseId = baseOf(scheme.roles).id;
      const held = (ids: Iterable<number>) =>
        ascending([...new Set([...ids, baseId])].filter((id) => id !== guest?.id));
      expect(goal).toEqual({ from: held(member.roleIds), to: held(stateAfter(member, steps)) });
    });
  });

  test('for the base role takes away all the roles that count', () => {
    holds(arbitrary, ({ scheme, member }) => {
      const { steps } = rolePlan(scheme, member, baseOf(scheme.roles));
      const held = managed(scheme).filter((role) => member.roleIds.includes(role.id));
      expect(steps).toEqual(roleIds(held).map((roleId) => ({ kind: 'unassign', roleId })));
    });
  });
});

describe('a plan with a ladder', () => {
  test('leaves no role on the ladder but the target', () => {
    holds(withLadder, ({ scheme, member, target }) => {
      const state = stateAfter(member, rolePlan(scheme, member, target).steps);
      const left = (scheme.ladder ?? []).filter((role) => state.has(role.id));
      expect(left).toEqual(target.kind === 'base' ? [] : [target]);
    });
  });

  test('never touches the owner role', () => {
    holds(withLadder, ({ scheme, member, target }) => {
      const owner = ownerOf(scheme.roles);
      const { steps } = rolePlan(scheme, { ...member, roleIds: [...member.roleIds, owner.id] }, target);
      expect(steps.map((step) => step.roleId)).not.toContain(owner.id);
    });
  });
});

describe('a plan without a ladder', () => {
  test('cannot be undone if the group lists neither the previous roles nor the base role', () => {
    const baseless = { ...scheme(), roles: roles.filter(({ kind }) => kind !== 'base') };
    expect(codeOf(() => restorePlan(baseless, member('low'), [idBase + 999]))).toBe('unknown_rank');
  });

  test('leaves every lower role that was not the highest', () => {
    holds(withoutLadder, ({ scheme, member, target }) => {
      if (target.kind === 'base') return;
      const plan = rolePlan(scheme, member, target);
      const extra = customsOf(scheme.roles).filter(
        (role) => role.rank < Math.min(target.rank, heightOf(plan.highestBefore)),
      );
      const state = stateAfter(member, plan.steps);
      for (const role of extra) expect(state.has(role.id)).toBe(member.roleIds.includes(role.id));
    });
  });

  test('takes the role that was the highest', () => {
    holds(withoutLadder, ({ scheme, member, target }) => {
      const plan = rolePlan(scheme, member, target);
      if (plan.steps.length === 0) return;
      const top = heightOf(plan.highestBefore);
      const highest = customsOf(scheme.roles).filter((role) => role.rank === top && role.id !== target.id);
      const state = stateAfter(member, plan.steps);
      for (const role of highest) expect(state.has(role.id)).toBe(false);
    });
  });

  test('is empty only if the target is held and no role is above it', () => {
    holds(withoutLadder, ({ scheme, member, target }) => {
      const held = customsOf(scheme.roles).filter((role) => member.roleIds.includes(role.id));
      const isThere =
        target.kind === 'base'
          ? held.length === 0
          : held.includes(target) && held.every((role) => role.rank <= target.rank);
      expect(rolePlan(scheme, member, target).steps.length === 0).toBe(isThere);
    });
  });

  test('never touches the owner role, even for its holder', () => {
    holds(withoutLadder, ({ scheme, member, target }) => {
      const owner = ownerOf(scheme.roles);
      const { steps } = rolePlan(scheme, { ...member, roleIds: [...member.roleIds, owner.id] }, target);
      expect(steps.map((step) => step.roleId)).not.toContain(owner.id);
    });
  });

  test('compares roles, not ranks: a change between two roles of the same rank gives one and takes the other', () => {
    const plan = rolePlan(scheme(), member('twinA'), role('twinB'));
    expect(plan.steps).toEqual([assign('twinB'), unassign('twinA')]);
  });

  test('takes the roles above a held target, and leaves those below', () => {
    const plan = rolePlan(scheme(), member('low', 'mid', 'high'), role('mid'));
    expect(plan).toMatchObject({ steps: [unassign('high')], highestBefore: role('high') });
    expect(plan.goal.to).toEqual(roleIds([role('Member'), role('low'), role('mid')]));
  });
});

describe('the roles held', () => {
  test('always include the base role, and never the guest role', () => {
    const held = heldRoles(roles, { userId: 1, roleIds: [role('Guest').id, role('mid').id, 999] });
    expect(held).toEqual([role('Member'), role('mid')]);
  });

  test('that are off the ladder do not count as the highest role', () => {
    expect(highestRole(scheme('low', 'mid'), [role('Member'), role('high')])).toBe(role('Member'));
    expect(highestRole(scheme('low', 'mid'), [role('Member'), role('low'), role('high')])).toBe(role('low'));
    expect(highestRole(scheme(), [role('Member'), role('low'), role('high')])).toBe(role('high'));
  });
});

describe('newRankId', () => {
  test('is a rank up to 255 and a role id above that, in any group', () => {
    fc.assert(
      fc.property(arbitraryRoles, (all) => {
        for (const wanted of customsOf(all)) {
          const group = { ...scheme(), roles: all };
          expect(resolveTarget(group, wanted.id)).toBe(wanted);
          const isShared = customsOf(all).filter((other) => other.rank === wanted.rank).length > 1;
          if (isShared) expect(codeOf(() => resolveTarget(group, wanted.rank))).toBe('ambiguous_rank');
          else expect(resolveTarget(group, wanted.rank)).toBe(wanted);
        }
      }),
      { numRuns: 50 },
    );
  });

  test('distinguishes role ids with the same lower 32 bits', () => {
    expect(codeOf(() => resolveTarget(scheme(), role('mid').id - 2 ** 32))).toBe('unknown_rank');
  });

  test.each([
    ['Guest', 'is the guest role, which no member holds'],
    ['Owner', 'has the rank of the owner role, which can never be given'],
  ])('%s is refused by rank and by role id', (name, reason) => {
    for (const named of [role(name).rank, role(name).id]) {
      expect(refusalOf(() => resolveTarget(scheme(), named))).toMatchObject({
        code: 'rank_not_allowed',
        message: expect.stringContaining(`"${name}" ${reason}`),
      });
      expect(refusalOf(() => resolveTarget(scheme(), named)).message).toContain('1 (Member), 10 (low)');
    }
  });

  test('a rank that two roles share is refused with both role ids', () => {
    const { code, message } = refusalOf(() => resolveTarget(scheme(), 70));
    expect(code).toBe('ambiguous_rank');
    expect(message).toContain(`${role('twinA').id} (twinA)`);
    expect(message).toContain(`${role('twinB').id} (twinB)`);
  });

  test('a shared rank is unambiguous if only one of its roles is on the ladder', () => {
    expect(resolveTarget(scheme('low', 'twinB'), 70)).toBe(role('twinB'));
  });

  test('a role off the ladder is refused by rank and by role id, with a list of the roles on it', () => {
    for (const named of [role('high').rank, role('high').id, role('twinA').id]) {
      expect(refusalOf(() => resolveTarget(scheme('low', 'twinB'), named))).toMatchObject({
        code: 'rank_not_allowed',
        message: expect.stringMatching(/^"(high|twinA)" .*group\.ladder.* 1 \(Member\), 10 \(low\), 70 \(twinB\)\./),
      });
    }
  });

  test('a rank shared by roles that are all off the ladder is refused as off the ladder', () => {
    expect(codeOf(() => resolveTarget(scheme('low', 'mid'), 70))).toBe('rank_not_allowed');
  });

  test('the base role can be requested even with a ladder', () => {
    expect(resolveTarget(scheme('low'), 1)).toBe(role('Member'));
  });

  test('an unknown rank is refused with alternatives that can all be given', () => {
    const { code, message } = refusalOf(() => resolveTarget(scheme(), 42));
    expect(code).toBe('unknown_rank');
    expect(message).toContain(
      `1 (Member), 10 (low), 50 (mid), role id ${idBase + 70} (twinA), role id ${idBase + 71} (twinB), 100 (high)`,
    );
    expect(message).not.toMatch(/Guest|Owner/);
  });
});

test.each([
  ['with a ladder', withLadder],
  ['without a ladder', withoutLadder],
])(
  'a role that can be given has a name that identifies it in requests, even if others share its rank: %s',
  (_, arbitrary) => {
    holds(arbitrary, ({ scheme }) => {
      for (const role of givableRoles(scheme)) expect(resolveTarget(scheme, nameForRequest(scheme, role))).toBe(role);
    });
  },
);

describe('refusals stay small in a group of 40 roles with names of 100 characters', () => {
  const hundred = (character: string) => Array.from({ length: 100 / character.length }, () => character).join('');
  const groupOf = (name: string, rankOf: (index: number) => number): RoleScheme => ({
    roles: Array.from({ length: 40 }, (_, index) => ({
      id: 2 ** 53 - 1 - index,
      name,
      rank: rankOf(index),
      kind: 'custom' as const,
    })),
    ladder: undefined,
    rankOne: 'custom',
  });

  test.each([
    ['Latin', 'n'],
    ['Thai', 'ก'],
    ['emoji', '🐢'],
  ])('for an unknown rank among %s names', (_, character) => {
    const { message } = refusalOf(() =>
      resolveTarget(
        groupOf(hundred(character), (index) => 101 + index),
        42,
      ),
    );
    expect(Buffer.byteLength(message)).toBeLessThan(1_200);
    expect(message).toContain('more');
  });

  test('for a rank that all roles share', () => {
    const { message } = refusalOf(() =>
      resolveTarget(
        groupOf(hundred('n'), () => 100),
        100,
      ),
    );
    expect(Buffer.byteLength(message)).toBeLessThan(1_200);
  });

  test('without cutting a name in the middle of a character', () => {
    const listed = listRoles([{ id: 300, name: hundred('🐢'), rank: 5, kind: 'custom' }]);
    expect(listed.isWellFormed()).toBe(true);
  });
});

function readLadder(of: RoleScheme, ladder: number[]) {
  const entries = ladder.map((entry) => ({ setting: 'group.ladder', entry }));
  const found = resolveRoles(of, entries, []);
  return { ...found, ladder: ladderOf(entries, found) };
}

describe('the configured ladder', () => {
  test('is read from ranks and role ids in any order, each role once, without the base role', () => {
    const { ladder } = readLadder(scheme(), [100, role('twinA').id, 1, 10, role('low').id, role('Member').id]);
    expect(ladder).toEqual([role('low'), role('twinA'), role('high')]);
  });

  test('may be empty: then only the base role can be requested', () => {
    expect(codeOf(() => resolveTarget({ ...scheme(), ladder: [] }, 10))).toBe('rank_not_allowed');
  });

  test.each<[string, number[], RegExp]>([
    ['a rank that no role has', [10, 42], /42 is not a rank or role id/],
    ['a role id that no role has', [10, 4242], /4242 is not a rank or role id/],
    ['a rank that two roles share', [10, 70], /rank 70 is shared by role \d+ and role \d+; use the role id/],
    ['the guest role', [0, 10], /0 is the guest role/],
    ['the owner role', [10, 255], /255 has the rank of the owner role/],
    ['the owner role by id', [10, idBase + 255], /12884902143 has the rank of the owner role/],
    ['two roles of one rank', [idBase + 70, idBase + 71], /two of its roles share rank 70/],
  ])('is refused with %s', (_, ladder, reason) => {
    expect(readLadder(scheme(), ladder).misfits).toContainEqual({
      ...{ setting: 'group.ladder', entry: expect.any(String), stops: 'ranks', isUnread: true },
      message: expect.stringMatching(reason),
      fix: expect.stringContaining('rankd group roles'),
    });
  });
});

describe('in a group from before March 2026, whose base role shares rank 1 with a custom role', () => {
  const recruit = { ...named('Recruit', 1), id: idBase - 1 };
  const [member, low] = [role('Member'), role('low')];
  const old = (change: Partial<RoleScheme> = {}): RoleScheme => ({
    ...scheme(),
    roles: roles.toSpliced(2, 0, recruit),
    ...change,
  });

  test('rank 1 means the custom role, or the base role if so configured, and a role id identifies either', () => {
    for (const [rankOne, meant] of [['custom', recruit] as const, ['base', member] as const]) {
      expect(resolveTarget(old({ rankOne }), 1)).toBe(meant);
      expect(resolveTarget(old({ rankOne }), member.id)).toBe(member);
      expect(resolveTarget(old({ rankOne }), recruit.id)).toBe(recruit);
    }
  });

  test('rank 1 is ambiguous only if two custom roles have it', () => {
    const cadet = { ...recruit, id: recruit.id - 1, name: 'Cadet' };
    const twice = old({ roles: old().roles.toSpliced(2, 0, cadet) });
    const { code, message } = refusalOf(() => resolveTarget(twice, 1));
    expect(code).toBe('ambiguous_rank');
    expect(message).toContain(`${cadet.id} (Cadet), ${recruit.id} (Recruit).`);
    expect(resolveTarget({ ...twice, rankOne: 'base' }, 1)).toBe(member);
    expect(codeOf(() => neighbor({ ...twice, rankOne: 'base' }, { height: 0, direction: 'up' }))).toBe(
      'ambiguous_rank',
    );
  });

  test('an unknown rank is refused with numbers that identify one role each', () => {
    const { message } = refusalOf(() => resolveTarget(old(), 42));
    expect(message).toContain(`Choose one of role id ${member.id} (Member), 1 (Recruit), 10 (low), `);
  });

  test('only roles that the acting account can give are suggested', () => {
    const acting = { userId: 1, ownerId: 2, rank: 10 };
    const { message } = refusalOf(() => resolveTarget(old(), 'nothing like it', acting));
    expect(message).toMatch(/Choose one of role id \d+ \(Member\), 1 \(Recruit\)\.$/);
  });

  test('rank 1 means the base role if the custom role is off the ladder', () => {
    expect(resolveTarget(old({ ladder: [low] }), 1)).toBe(member);
    expect(resolveTarget(old({ ladder: [recruit, low] }), 1)).toBe(recruit);
  });

  test('the ladder accepts the custom role by rank or id, with the base role below it', () => {
    for (const entries of [
      [1, 10],
      [recruit.id, 10],
      [1, 10, member.id],
    ])
      expect(readLadder(old(), entries).ladder).toEqual([recruit, low]);
    expect(readLadder(old({ rankOne: 'base' }), [1, 10]).ladder).toEqual([low]);
  });

  test('the base role is one step below the custom role, and a change down to it counts as taking away', () => {
    expect(neighbor(old(), { height: 10, direction: 'down' })).toBe(recruit);
    expect(neighbor(old(), { height: 1, direction: 'down' })).toBe(member);
    expect(neighbor(old(), { height: 0, direction: 'up' })).toBe(recruit);
    const down = rolePlan(old(), { userId: 7, roleIds: [recruit.id] }, member);
    expect([takesAway(down), rise(down) < 0]).toEqual([true, true]);
    const up = rolePlan(old(), { userId: 7, roleIds: [] }, recruit);
    expect([takesAway(up), rise(up) > 0]).toEqual([false, true]);
  });

  test('a list that locks or protects rank 1 applies to both roles', () => {
    for (const one of [member, recruit]) expect(isNamed(one, [1])).toBe(true);
    expect([isNamed(member, [recruit.id]), isNamed(recruit, [recruit.id])]).toEqual([false, true]);
    expect(neighbor(old(), { height: 10, direction: 'down' }, [1])).toBeUndefined();
  });
});

describe('the neighboring role', () => {
  test('is the nearest that can be given, up and down', () => {
    expect(neighbor(scheme(), { height: 10, direction: 'up' })).toBe(role('mid'));
    expect(neighbor(scheme(), { height: 10, direction: 'down' })).toBe(role('Member'));
    expect(neighbor(scheme(), { height: 60, direction: 'down' })).toBe(role('mid'));
  });

  test('skips roles off the ladder', () => {
    expect(neighbor(scheme('low', 'high'), { height: 10, direction: 'up' })).toBe(role('high'));
    expect(neighbor(scheme('low', 'high'), { height: 100, direction: 'down' })).toBe(role('low'));
  });

  test('is undefined beyond the ends: it is never the owner role or the guest role', () => {
    expect(neighbor(scheme(), { height: 100, direction: 'up' })).toBeUndefined();
    expect(neighbor(scheme(), { height: 0, direction: 'down' })).toBeUndefined();
    expect(neighbor(scheme('low'), { height: 10, direction: 'up' })).toBeUndefined();
    expect(neighbor(scheme(), { height: 255, direction: 'up' })).toBeUndefined();
  });

  test('is refused if two roles share the rank, unless only one is on the ladder', () => {
    for (const from of [{ height: 50, direction: 'up' } as const, { height: 100, direction: 'down' } as const]) {
      expect(codeOf(() => neighbor(scheme(), from))).toBe('ambiguous_rank');
      expect(neighbor(scheme('mid', 'twinA', 'high'), from)).toBe(role('twinA'));
    }
  });

  test('is never a locked role, even if it shares its rank with another', () => {
    const [up, down] = [{ height: 10, direction: 'up' } as const, { height: 100, direction: 'down' } as const];
    expect(neighbor(scheme(), up, [50, idBase + 70])).toBe(role('twinB'));
    expect(neighbor(scheme(), down, [70])).toBe(role('mid'));
    expect(neighbor(scheme(), up, [50, 70, 100])).toBeUndefined();
  });

  test('is the adjacent rung, on every ladder', () => {
    holds(withLadder, ({ scheme: group }) => {
      const rungs = [baseOf(group.roles), ...(group.ladder ?? [])];
      rungs.forEach((rung, index) => {
        const height = heightOf(rung);
        expect(neighbor(group, { height, direction: 'up' })).toBe(rungs[index + 1]);
        expect(neighbor(group, { height, direction: 'down' })).toBe(rungs[index - 1]);
      });
    });
  });
});

describe('while Roblox does not show which of two roles is the base role', () => {
  const other: Role = { id: 71_071, name: 'Recruit', rank: 1, kind: 'custom' };

  /**
   * Generates a scheme in which Roblox does not show which of two roles is the base role (`unclear`), and the scheme
   * for each of the two cases (`worlds`).
   */
  const arbitraryWorlds = arbitraryRoles.chain((all) => {
    const base = baseOf(all);
    const known = all.filter(({ rank }) => rank !== 1);
    const customs = customsOf(known);
    const pair = [base, other];
    const schemeOf = (ladder: Role[] | undefined, kindOf: (role: Role) => RoleKind): RoleScheme => {
      const rankOne = pair.map((role): Role => ({ ...role, kind: kindOf(role) }));
      const isRung = ({ id, kind }: Role) => kind !== 'base' && ladder?.some((rung) => rung.id === id);
      const roles = [...rankOne, ...known];
      return { roles, ladder: ladder && roles.filter(isRung), rankOne: 'custom' };
    };
    const someOf = (roles: Role[]) => fc.subarray(roles).map((some) => some.map(({ id }) => id));
    return fc
      .record({
        ladder: fc.option(fc.tuple(fc.subarray(pair), arbitraryLadder(known)), { nil: undefined }),
        held: fc.tuple(someOf(customs), someOf(pair)),
        wanted: someOf([...customs, ...pair]),
        asked: fc.constantFrom(...customs, ...pair),
      })
      .map(({ ladder, held, wanted, asked }) => ({
        ...{ asked: asked.id, customs, wanted, member: { userId: 7, roleIds: held.flat() } },
        unclear: schemeOf(ladder?.flat(), () => 'unclear'),
        worlds: pair.map((base) => schemeOf(ladder?.flat(), ({ id }) => (id === base.id ? 'base' : 'custom'))),
      }));
  });

  const roleIn = ({ roles }: RoleScheme, asked: number) => {
    const found = roles.find(({ id }) => id === asked);
    if (found === undefined) throw new Error(`no role ${asked}`);
    return found;
  };
  const resultOf = (find: () => RolePlan | Role) => {
    try {
      const found = find();
      return 'steps' in found ? { to: found.target.id, steps: found.steps, rise: rise(found) } : { to: found.id };
    } catch (error) {
      if (!isRankdError(error)) throw error;
      return { code: error.code };
    }
  };

  const planOrNone = (find: () => RolePlan): RolePlan | undefined => {
    try {
      return find();
    } catch {
      return undefined;
    }
  };
  const afterStep = (held: number[], { kind, roleId }: Step) =>
    kind === 'assign' ? [...held, roleId] : held.filter((id) => id !== roleId);

  test('every possible plan is right for either base role', () => {
    fc.assert(
      fc.property(arbitraryWorlds, ({ unclear, worlds, member, wanted, asked }) => {
        const finders: Array<(scheme: RoleScheme) => RolePlan | Role> = [
          (scheme) => resolveTarget(scheme, asked),
          (scheme) => resolveTarget(scheme, roleIn(scheme, asked).rank),
          (scheme) => rolePlan(scheme, member, resolveTarget(scheme, asked)),
          (scheme) => suspendedRole(scheme, undefined),
          (scheme) => suspensionPlan(scheme, member, suspendedRole(scheme, asked)),
          (scheme) => restorePlan(scheme, member, wanted),
          (scheme) => rolePlan(scheme, member, nextRole(scheme, member, { step: 'demote' }, [])),
          (scheme) => rolePlan(scheme, member, nextRole(scheme, member, { step: 'promote' }, [])),
        ];
        for (const find of finders) {
          const result = resultOf(() => find(unclear));
          if (result.code === 'platform_unavailable') continue;
          for (const world of worlds) expect(resultOf(() => find(world))).toEqual(result);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('a planned undo counts as reached for either base role', () => {
    fc.assert(
      fc.property(arbitraryWorlds, ({ unclear, worlds, member, wanted }) => {
        const plan = planOrNone(() => restorePlan(unclear, member, wanted));
        fc.pre(plan !== undefined);
        const undo = { roleId: plan.target.id, rolesAfter: plan.goal.to, undoOf: 'chg_1' };
        const ids = plan.steps.reduce((held, step) => afterStep(held, step), member.roleIds);
        for (const world of worlds) expect(isReached(world, undo, { ...member, roleIds: ids })).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test('a member with a known role can get any other known role', () => {
    fc.assert(
      fc.property(arbitraryWorlds, ({ unclear, member, customs, asked }) => {
        const isKnown = (id: number) => givableRoles(unclear).some((role) => role.id === id);
        const held = customs.map(({ id }) => id).filter((id) => member.roleIds.includes(id));
        fc.pre(isKnown(asked) && held.some(isKnown));
        expect(() => rolePlan(unclear, { ...member, roleIds: held }, roleIn(unclear, asked))).not.toThrow();
      }),
    );
  });
});

const roles: Role[] = [
  named('Guest', 0, 'guest'),
  named('Member', 1, 'base'),
  named('low', 10),
  named('mid', 50),
  named('twinA', 70),
  { ...named('twinB', 70), id: idBase + 71 },
  named('high', 100),
  named('Owner', 255, 'owner'),
];

function named(name: string, rank: number, kind: RoleKind = 'custom'): Role {
  return { id: idBase + rank, name, rank, kind };
}

function role(name: string): Role {
  const found = roles.find((candidate) => candidate.name === name);
  if (found === undefined) throw new Error(`no role ${name}`);
  return found;
}

function scheme(...ladder: string[]): RoleScheme {
  return { roles, ladder: ladder.length === 0 ? undefined : ladder.map(role), rankOne: 'custom' };
}

function member(...held: string[]): Member {
  return { userId: 7, roleIds: held.map((name) => role(name).id) };
}

function assign(name: string): Step {
  return { kind: 'assign', roleId: role(name).id };
}

function unassign(name: string): Step {
  return { kind: 'unassign', roleId: role(name).id };
}

function holds(arbitrary: fc.Arbitrary<RankCase>, guarantee: (of: RankCase) => void): void {
  fc.assert(fc.property(arbitrary, guarantee), { numRuns: 150 });
}

function managed({ roles: all, ladder }: RoleScheme): Role[] {
  return ladder ?? customsOf(all);
}

function ownerOf(all: Role[]): Role {
  const owner = all.find((candidate) => candidate.kind === 'owner');
  if (owner === undefined) throw new Error('a group without an owner role');
  return owner;
}

function stateAfter({ roleIds: held }: Member, taken: Step[]): Set<number> {
  const state = new Set(held);
  for (const { kind, roleId } of taken) kind === 'assign' ? state.add(roleId) : state.delete(roleId);
  return state;
}

function ascending(ids: number[]): number[] {
  return ids.sort((a, b) => a - b);
}

function refusalOf(call: () => unknown): RankdError {
  try {
    call();
  } catch (error) {
    if (error instanceof RankdError) return error;
    throw error;
  }
  throw new Error('was not refused');
}

function codeOf(call: () => unknown): string {
  return refusalOf(call).code;
}
