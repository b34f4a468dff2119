import type { RankChange } from './model.ts';

export type UndoVerdict =
  /** Restore the roles from before `earliest`. This also undoes the changes in `between`, which are not selected. */
  | { kind: 'put_back'; earliest: RankChange; between: RankChange[]; undoId: string | undefined }
  /** Every selected change has already been undone, most recently by the undo `undoId`. */
  | { kind: 'already'; undoId: string | undefined }
  /** The newest change that has not been undone (`by`) is not selected. */
  | { kind: 'changed_since'; by: RankChange };

/** True if the change altered the member's roles, or began or ended a hold. */
export function tookEffect({ state, dryRun, rolesBefore, rolesAfter, hold }: RankChange): boolean {
  return state === 'applied' && !dryRun && (hold !== undefined || rolesBefore.join() !== rolesAfter.join());
}

/**
 * Judges an undo. `timeline` lists the changes that took effect on the member, newest first, back to the oldest
 * selected one and to every change that an undo in the timeline reverted. An unselected undo and the changes that it
 * reverted cancel out.
 */
export function undoing(timeline: RankChange[], isSelected: (change: RankChange) => boolean): UndoVerdict {
  const { live, undoId } = liveChanges(timeline, isSelected);
  const [newest] = live;
  const selected = live.filter(isSelected);
  const earliest = selected.at(-1);
  if (newest === undefined || earliest === undefined) return { kind: 'already', undoId };
  if (newest !== selected[0]) return { kind: 'changed_since', by: newest };
  const between = live.slice(0, live.indexOf(earliest)).filter((change) => !isSelected(change));
  return { kind: 'put_back', earliest, between, undoId };
}

/**
 * Returns the timeline without the unselected undos and the changes that they reverted. `undoId` is the newest undo
 * that reverted a selected change.
 */
function liveChanges(
  timeline: RankChange[],
  isSelected: (change: RankChange) => boolean,
): { live: RankChange[]; undoId: string | undefined } {
  const live: RankChange[] = [];
  let undoId: string | undefined;
  let next = 0;
  for (const [at, change] of timeline.entries()) {
    if (at < next) continue;
    const undoneIndex = isSelected(change) ? -1 : timeline.findIndex(({ id }) => id === change.undoOf);
    next = Math.max(at, undoneIndex) + 1;
    if (undoneIndex <= at) live.push(change);
    else if (timeline.slice(at + 1, next).some(isSelected)) undoId ??= change.undoId;
  }
  return { live, undoId };
}
