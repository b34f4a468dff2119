import fc from 'fast-check';
import { expect, test } from 'vitest';
import { judgeHold } from '../../src/core/holds.ts';
import type { Hold, Member } from '../../src/core/model.ts';
import { restorePlan, suspensionPlan } from '../../src/core/role-plan.ts';
import { heldIds, isUnlisted } from '../../src/core/role-scheme.ts';
import { arbitraryRankCase } from '../support/arbitrary-group.ts';

const doing = { by: 'daemon', at: 0 };

test.each([true, false])(
  'whatever the group is and the member holds, a suspension gives exactly the roles from before back (ladder: %s)',
  (ladder) => {
    fc.assert(
      fc.property(arbitraryRankCase({ ladder }), ({ scheme, member, target }) => {
        const held = (ids: number[]): number[] => heldIds(scheme.roles, { roleIds: ids });
        const unlisted = member.roleIds.filter((id) => isUnlisted(scheme.roles, id));
        const begin = suspensionPlan(scheme, member, target);
        expect(begin.goal.to).toEqual(held([target.id, ...unlisted]));
        const during: Member = { ...member, roleIds: carriedOut(member.roleIds, begin.steps) };
        const hold = holdOf(begin.goal.from, held(during.roleIds));
        const verdict = judgeHold(hold, { member: during, roles: scheme.roles, isOver: true }, doing);
        expect(verdict.do).toBe('give_back');
        if (verdict.do !== 'give_back') return;
        const back = restorePlan(scheme, during, verdict.roles);
        expect(held(carriedOut(during.roleIds, back.steps))).toEqual(held(member.roleIds));
      }),
    );
  },
);

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
