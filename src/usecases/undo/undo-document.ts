import type { UndoRun, UndoTargets } from './undo-changes.ts';
import type { MemberUndo, Rankee } from './undo-member.ts';

export function undoDocument({ targets, run, dryRun }: { targets: UndoTargets; run: UndoRun; dryRun: boolean }) {
  const { error } = run;
  return {
    id: targets.undoId,
    dryRun,
    changes: targets.changes,
    undosLeftOut: targets.leftOut,
    members: [...run.results, ...targets.answered].map(memberDocument),
    left: run.left.map(({ rankeeId }) => rankeeId),
    stoppedBy: error === undefined ? null : { code: error.code, message: error.message },
  };
}

function memberDocument(result: Rankee & MemberUndo) {
  const change = 'change' in result ? result.change : undefined;
  const error = 'error' in result ? result.error : undefined;
  return {
    rankeeId: result.rankeeId,
    rankeeName: result.rankeeName,
    state: result.state,
    changeId: result.state === 'put_back' ? result.change.id : 'changeId' in result ? (result.changeId ?? null) : null,
    undoOf: change?.undoOf ?? null,
    rolesBefore: change?.rolesBefore ?? null,
    rolesAfter: change?.rolesAfter ?? null,
    byChange: 'byChange' in result ? (result.byChange ?? null) : null,
    code: error?.code ?? null,
    message: undoMessage(result),
  };
}

export function undoMessage(result: MemberUndo): string {
  switch (result.state) {
    case 'put_back':
    case 'would_put_back':
      return result.change.message;
    case 'changed_since':
      return result.byChange === undefined
        ? 'outside rankd: Roblox now shows different roles'
        : `by ${result.byChange}`;
    case 'refused':
    case 'unknown':
      return result.error.message;
    case 'already':
    case 'left_group':
      return '';
  }
}
