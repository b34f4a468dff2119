import type { ListedMember, MemberChange, PlannedList } from '../change/change-list.ts';
import type { Run } from '../run-many.ts';

/** The result of a list of members. Always has the same fields. */
export function listDocument({ plan, run }: { plan: PlannedList; run: Run<ListedMember, MemberChange> }) {
  const { error } = run;
  return {
    id: plan.id,
    members: run.results.map((result) => ({
      line: result.line,
      rankeeId: result.rankeeId,
      rankeeName: result.rankeeName,
      state: result.state,
      changeId: 'change' in result ? result.change.id : null,
      code: 'error' in result ? result.error.code : null,
      message: listMessage(result),
    })),
    left: run.left.map(({ line, rankeeId, rankeeName }) => ({ line, rankeeId, rankeeName })),
    stoppedBy: error === undefined ? null : { code: error.code, message: error.message },
  };
}

/** The outcome for a member, in words. */
export function listMessage(result: MemberChange): string {
  return 'error' in result ? result.error.message : result.change.message;
}
