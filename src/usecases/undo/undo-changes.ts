import { RankdError } from '../../base/errors.ts';
import { newId } from '../../core/api-key.ts';
import { historyUndone } from '../../core/events.ts';
import { isPseudonym } from '../../core/pseudonym.ts';
import { undoing } from '../../core/undo.ts';
import type { ChangeSelection } from '../../ports/index.ts';
import { outcomeUnknown } from '../change/change-outcome.ts';
import { isStillTold } from '../change/late-look.ts';
import type { Ranking } from '../change/ranking.ts';
import { type Run, runMany } from '../run-many.ts';
import { type MemberUndo, type Rankee, type UndoCommand, undoMember } from './undo-member.ts';
import { effectiveChanges, isLeftOut, timelineOf } from './undo-timeline.ts';

/** Whom there is to put back according to the history. The platform was not asked yet. */
export interface UndoTargets {
  /** A new id, or that of the earlier run that this one continues. */
  undoId: string;
  /** How many changes are selected. */
  changes: number;
  /** Their ids, newest first. */
  ids: string[];
  /** How many more would have been, but are what an undo did. */
  leftOut: number;
  /** Members who may have to be put back: newest change first, members with an open change last. */
  members: Rankee[];
  /** Members for whom the history alone gives the answer. */
  answered: Array<Rankee & MemberUndo>;
}

export type UndoRun = Run<Rankee, MemberUndo>;

/**
 * Finds the members of the selected changes, and which of them are left alone or done already. Reads the history of this group only.
 * Throws `not_found` if an undo is selected that changed nothing here, or a change that is not there; and `usage` if more than `maxChanges` are selected.
 */
export async function findUndoTargets(
  history: Pick<Ranking, 'store' | 'group'>,
  selection: ChangeSelection,
  { maxChanges = Number.POSITIVE_INFINITY }: { maxChanges?: number } = {},
): Promise<UndoTargets> {
  const found = new Map<number, { rankee: Rankee; selected: Set<string>; hasOpen: boolean }>();
  await requireChanges(history, selection);
  const ids: string[] = [];
  let leftOut = 0;
  for await (const change of effectiveChanges(history, selection)) {
    if (isPseudonym(change.rankeeId)) continue; // nobody knows any more whose roles these were
    if (isLeftOut(change, selection)) {
      leftOut += 1;
      continue;
    }
    ids.push(change.id);
    if (ids.length > maxChanges) throw tooMany(maxChanges);
    const { id, rankeeId, rankeeName, state } = change;
    const mine = found.get(rankeeId) ?? { rankee: { rankeeId, rankeeName }, selected: new Set(), hasOpen: false };
    found.set(rankeeId, { ...mine, selected: mine.selected.add(id), hasOpen: mine.hasOpen || state !== 'applied' });
  }
  const changes = ids.length;
  if (changes === 0 && selection.undoId !== undefined) throw nothingOf(selection.undoId);
  const targets: UndoTargets = { undoId: newId('undo'), changes, ids, leftOut, members: [], answered: [] };
  const waiting: Rankee[] = [];
  let earlierRun: string | undefined;
  for (const { rankee, selected, hasOpen } of found.values()) {
    if (hasOpen) {
      waiting.push(rankee);
      continue;
    }
    const timeline = await timelineOf(history, { rankeeId: rankee.rankeeId, selected });
    const todo = undoing(timeline, ({ id }) => selected.has(id));
    if (todo.kind !== 'changed_since') earlierRun ??= todo.undoId;
    if (todo.kind === 'put_back') targets.members.push(rankee);
    else if (todo.kind === 'already') targets.answered.push({ ...rankee, state: 'already' });
    else targets.answered.push({ ...rankee, state: 'changed_since', byChange: todo.by.id });
  }
  return { ...targets, undoId: earlierRun ?? targets.undoId, members: [...targets.members, ...waiting] };
}

/** Throws `not_found` for an id that no change in this group has. */
async function requireChanges({ store, group }: Pick<Ranking, 'store' | 'group'>, { ids = [] }: ChangeSelection) {
  if (ids.length === 0) return;
  const found = await store.listChanges({ ids, group: group.title, limit: ids.length });
  const missing = ids.find((id) => !found.some((change) => change.id === id));
  if (missing !== undefined)
    throw new RankdError('not_found', `There is no rank change ${missing} in this group.`, {
      hint: 'rankd history list',
    });
}

function tooMany(max: number): RankdError {
  return new RankdError('usage', `More than ${max} changes are selected: that is too much for the page.`, {
    hint: 'look first: rankd history undo --key KEY --since 1h --dry-run',
  });
}

function nothingOf(undoId: string): RankdError {
  return new RankdError('not_found', `No undo ${undoId} changed anything.`, {
    hint: 'rankd audit list --action history.undo',
  });
}

/** Puts the members back, as `runMany` does it; `changes` is how many changes that takes back. */
export async function runUndo(
  app: Ranking,
  { members, changes, command }: { members: Rankee[]; changes: number; command: UndoCommand },
  control: { stop: AbortSignal; report: (done: number) => void },
): Promise<UndoRun> {
  const { selection, undoId, by, dryRun } = command;
  const undone = { ...selection, changes, members: members.length };
  if (!dryRun) await app.store.appendAudit(historyUndone(undoId, undone, { by, at: app.clock.now() }));
  const act = {
    act: (rankee: Rankee) => undoMember(app, command, rankee),
    refused: (error: RankdError): MemberUndo => ({ state: 'refused', error }),
  };
  return runMany(app, { members, act }, control);
}

/** What the run did, after its changes were read once more: what Roblox was seen to hold otherwise is not confirmed. */
export async function afterLateLooks(app: Pick<Ranking, 'store'>, run: UndoRun): Promise<UndoRun> {
  const results = run.results.map(async (result): Promise<Rankee & MemberUndo> => {
    const isApplied = result.state === 'put_back';
    if (!isApplied && result.state !== 'refused') return result;
    const changeId = 'change' in result ? result.change.id : result.changeId;
    if (changeId === undefined || (await isStillTold(app, changeId, { isApplied }))) return result;
    const { rankeeId, rankeeName } = result;
    return { rankeeId, rankeeName, state: 'unknown', changeId, error: outcomeUnknown() };
  });
  return { ...run, results: await Promise.all(results) };
}
