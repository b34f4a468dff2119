import type { RankChange } from '../../core/model.ts';
import { tookEffect } from '../../core/undo.ts';
import type { ChangeSelection } from '../../ports/index.ts';
import type { Ranking } from '../change/ranking.ts';

/** The history of one group: what was done in another tells nothing of it. */
type History = Pick<Ranking, 'store' | 'group'>;

const pageRows = 200;

/** The selected changes that took effect or may yet turn out to have, newest first. What an undo did is selected only by its name or its operator's. */
export async function* selectedChanges(history: History, selection: ChangeSelection): AsyncGenerator<RankChange> {
  const takesUndos = selection.undoId !== undefined || selection.by !== undefined;
  const asked = { ...selection, states: ['applied', 'pending', 'unknown'] satisfies RankChange['state'][] };
  for await (const change of allChanges(history, asked)) {
    if (!takesUndos && change.undoId !== undefined) continue;
    if (change.state !== 'applied' || tookEffect(change)) yield change;
  }
}

/** What took effect on a member, newest first, as far back as an undo of these changes has to look. */
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
