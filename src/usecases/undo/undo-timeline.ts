import type { RankChange } from '../../core/model.ts';
import { tookEffect } from '../../core/undo.ts';
import type { ChangeSelection } from '../../ports/index.ts';
import type { Ranking } from '../change/ranking.ts';

/** The history of one group. Changes in another group prove nothing about this one. */
type History = Pick<Ranking, 'store' | 'group'>;

const pageRows = 200;

/** The selected changes that took effect, or may have, newest first, except those that are left out. */
export async function* selectedChanges(history: History, selection: ChangeSelection): AsyncGenerator<RankChange> {
  for await (const change of effectiveChanges(history, selection)) if (!isLeftOut(change, selection)) yield change;
}

/** The same, including those that are left out. */
export async function* effectiveChanges(history: History, selection: ChangeSelection): AsyncGenerator<RankChange> {
  const asked = { ...selection, states: ['applied', 'pending', 'unknown'] satisfies RankChange['state'][] };
  for await (const change of allChanges(history, asked))
    if (change.state !== 'applied' || tookEffect(change)) yield change;
}

/**
 * True for the changes of an undo, unless it is selected by its own id: an undo of a raid must not restore the raid's
 * result.
 */
export function isLeftOut({ undoId }: RankChange, selection: ChangeSelection): boolean {
  return undoId !== undefined && selection.undoId === undefined && selection.ids === undefined;
}

/** The changes that took effect on a member, newest first, as far back as an undo of the selected ones needs. */
export async function timelineOf(
  history: History,
  { rankeeId, selected }: { rankeeId: number; selected: ReadonlySet<string> },
): Promise<RankChange[]> {
  const timeline: RankChange[] = [];
  const awaited = new Set(selected);
  for await (const change of allChanges(history, { rankeeId, states: ['applied'] })) {
    if (awaited.size === 0) break;
    awaited.delete(change.id);
    if (!tookEffect(change)) continue;
    timeline.push(change);
    if (change.undoOf !== undefined) awaited.add(change.undoOf);
  }
  return timeline;
}

async function* allChanges({ store, group }: History, selection: ChangeSelection): AsyncGenerator<RankChange> {
  let cursor: string | undefined;
  do {
    const { changes, next } = await store.pageChanges({ ...selection, group: group.title, limit: pageRows, cursor });
    yield* changes;
    cursor = next;
  } while (cursor !== undefined);
}
