import fc from 'fast-check';
import { expect, test } from 'vitest';
import { judgeHold } from '../../src/core/holds.ts';
import type { Hold, Member, Role } from '../../src/core/model.ts';
import { restorePlan, suspensionPlan } from '../../src/core/role-plan.ts';
import { heldIds, isUnlisted } from '../../src/core/role-scheme.ts';
import { arbitraryRankCase } from '../support/arbitrary-group.ts';

const actor = { by: 'daemon', at: 0 };

test.each([true, false])(
  'the end of a suspension restores exactly the previous roles, in any group and for any roles (ladder: %s)',
  (ladder) => {
    fc.assert(
      fc.property(arbitraryRankCase({ ladder }), ({ scheme, member, target }) => {
        const held = (ids: number[]): number[] => heldIds(scheme.roles, { roleIds: ids });
        const unlisted = member.roleIds.filter((id) => isUnlisted(scheme.roles, id));
        const begin = suspensionPlan(scheme, member, target);
        expect(begin.goal.to).toEqual(held([target.id, ...unlisted]));
        const during: Member = { ...member, roleIds: carriedOut(member.roleIds, begin.steps) };
        const hold = holdOf(begin.goal.from, held(during.roleIds));
        const verdict = judgeHold(hold, { member: during, roles: scheme.roles, isOver: true }, actor);
        expect(verdict.do).toBe('give_back');
        if (verdict.do !== 'give_back') return;
        const back = restorePlan(scheme, during, verdict.roles);
        expect(held(carriedOut(during.roleIds, back.steps))).toEqual(held(member.roleIds));
      }),
    );
  },
);

const scheme = { roles: [role(1, 'base'), role(5), role(20)] };

test.each([-30, 0, 5, 30, 59])(
  "a member who rejoins a second after a suspension is suspended again, even if rankd's clock is %i s ahead of Roblox's",
  (aheadS) => {
    const begun = 1_000_000;
    const hold = { ...holdOf([1, 20], [1, 5]), beginsAt: begun + 1_000 * aheadS };
    const member = { userId: 7, roleIds: [1], joinedAt: begun + 1_000 };
    const seen = { member, roles: scheme.roles, isOver: false };
    expect(judgeHold(hold, seen, actor)).toEqual({ do: 'renew', roles: [1, 5] });
    const longBefore = { ...member, joinedAt: begun - 3_600_000 };
    expect(judgeHold(hold, { ...seen, member: longBefore }, actor)).toMatchObject({
      update: { holds: [{ state: 'superseded' }] },
    });
  },
);

test('a member who joined just before a suspension that gives no role gets the previous roles back', () => {
  const hold = { ...holdOf([1, 20], [1]), beginsAt: 1_000_000 };
  const member = { userId: 7, roleIds: [1], joinedAt: hold.beginsAt - 10_000 };
  const verdict = judgeHold(hold, { member, roles: scheme.roles, isOver: true }, actor);
  expect(verdict).toMatchObject({ do: 'give_back', roles: [1, 20] });
});

function role(id: number, kind: Role['kind'] = 'custom'): Role {
  return { id, name: `Role ${id}`, rank: id, kind };
}

function carriedOut(roles: number[], steps: Array<{ kind: 'assign' | 'unassign'; roleId: number }>): number[] {
  return steps.reduce(
    (now, { kind, roleId }) => (kind === 'assign' ? now.concat(roleId) : now.filter((id) => id !== roleId)),
    roles,
  );
}

function holdOf(rolesBefore: number[], rolesDuring: number[]): Hold {
  return {
    ...{
      id: 'hold_a',
      group: 'g',
      kind: 'suspension',
      state: 'active',
      rankeeId: 7,
      rankeeName: '',
      rolesBefore,
      rolesDuring,
    },
    ...{ changeId: 'chg_a', rankerId: 0, rankerName: '', by: 'cli:ann@host', beginsAt: 0, tries: 0, message: '' },
  };
}
