import type { RankChange } from './model.ts';

/** What taking changes of one member back means. */
export type Undoing =
  /** Put back the roles from before `earliest`; `between` are changes that are not selected and go with it. */
  | { kind: 'put_back'; earliest: RankChange; between: RankChange[]; undoId: string | undefined }
  /** Every selected change is taken back already, by the undo `undoId`. */
  | { kind: 'already'; undoId: string | undefined }
  /** The newest change that counts is not a selected one. */
  | { kind: 'changed_since'; by: RankChange };

/** True for a change that left other roles than it found. */
export function tookEffect({ state, dryRun, rolesBefore, rolesAfter }: RankChange): boolean {
  return state === 'applied' && !dryRun && rolesBefore.join() !== rolesAfter.join();
}

/**
 * `timeline` is what took effect on the member, newest first, reaching back to the oldest selected change and to all that
 * its undos took back. An undo that is not selected itself counts together with what it took back: as if nothing of it had been.
 */
export function undoing(timeline: RankChange[], isSelected: (change: RankChange) => boolean): Undoing {
  const { live, undoId } = liveChanges(timeline, isSelected);
  const [newest] = live;
  const selected = live.filter(isSelected);
  const earliest = selected.at(-1);
  if (newest === undefined || earliest === undefined) return { kind: 'already', undoId };
  if (newest !== selected[0]) return { kind: 'changed_since', by: newest };
  const between = live.slice(0, live.indexOf(earliest)).filter((change) => !isSelected(change));
  return { kind: 'put_back', earliest, between, undoId };
}

/** What is left of the timeline without what was taken back; `undoId`: the newest undo that took a selected change back. */
function liveChanges(
  timeline: RankChange[],
  isSelected: (change: RankChange) => boolean,
): { live: RankChange[]; undoId: string | undefined } {
  const live: RankChange[] = [];
  let undoId: string | undefined;
  let next = 0;
  for (const [at, change] of timeline.entries()) {
    if (at < next) continue;
    const takenBackTo = isSelected(change) ? -1 : timeline.findIndex(({ id }) => id === change.undoOf);
    next = Math.max(at, takenBackTo) + 1;
    if (takenBackTo <= at) live.push(change);
    else if (timeline.slice(at + 1, next).some(isSelected)) undoId ??= change.undoId;
  }
  return { live, undoId };
}
