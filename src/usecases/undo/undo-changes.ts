import { RankdError } from '../../base/errors.ts';
import { counted } from '../../base/text.ts';
import { isoTime } from '../../base/time.ts';
import { newId } from '../../core/api-key.ts';
import { isPseudonym } from '../../core/audit.ts';
import { historyUndone } from '../../core/events.ts';
import { isSimulatedGroup } from '../../core/group-title.ts';
import { undoing } from '../../core/undo.ts';
import type { ChangeSelection } from '../../ports/index.ts';
import { outcomeUnknown } from '../change/change-record.ts';
import { isReportStillTrue } from '../change/late-read.ts';
import type { Ranking } from '../change/ranking.ts';
import { type Run, runMany } from '../run-many.ts';
import {
  effectiveChanges,
  isLeftOut,
  type MemberUndo,
  type Rankee,
  selectedChanges,
  timelineOf,
  type UndoCommand,
  undoMember,
} from './undo-member.ts';

/** The changes that an undo selects, and the members to restore, judging by the history alone. */
export interface UndoTargets {
  /** A new id, or the id of the earlier undo that this one continues. */
  undoId: string;
  changes: number;
  /** The ids of the selected changes, newest first. */
  ids: string[];
  /** The number of changes left out because an undo made them. */
  leftOut: number;
  /** Members who may need to be restored: the one with the newest change first, those with an open change last. */
  members: Rankee[];
  /** Members whom the undo leaves unchanged, judging by the history, with their results. */
  answered: Array<Rankee & MemberUndo>;
}

export type UndoRun = Run<Rankee, MemberUndo>;

/**
 * Finds the selected changes in this group's history, and their members. Throws `not_found` if a selected change is not
 * in that history or a selected undo changed nothing, and `usage` if more than `maxChanges` are selected.
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
    if (isPseudonym(change.rankeeId)) continue; // the person was forgotten
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
  if (changes === 0 && selection.undoId !== undefined) throw emptyUndo(selection.undoId);
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

/** Returns the id of the newest selected change. Throws `not_found` if there is none. */
export async function newestChange(
  history: Pick<Ranking, 'store' | 'group'>,
  selection: ChangeSelection,
): Promise<string> {
  for await (const { id, rankeeId } of selectedChanges(history, selection)) if (!isPseudonym(rankeeId)) return id;
  throw new RankdError('not_found', 'No rank change is left to undo.', { hint: 'rankd history list' });
}

async function requireChanges({ store, group }: Pick<Ranking, 'store' | 'group'>, { ids = [] }: ChangeSelection) {
  if (ids.length === 0) return;
  const found = await store.listChanges({ ids, group: group.title, limit: ids.length });
  const missing = ids.find((id) => !found.some((change) => change.id === id));
  if (missing === undefined) return;
  const [elsewhere] = await store.listChanges({ ids: [missing], limit: 1 });
  if (elsewhere === undefined)
    throw new RankdError('not_found', `There is no rank change ${missing}.`, { hint: 'rankd history list' });
  const place = isSimulatedGroup(elsewhere.group) ? 'on the simulated group' : `in ${elsewhere.group}`;
  throw new RankdError(
    'not_found',
    `Rank change ${missing} was made ${place}, so it can't be undone in ${group.title}.`,
    {
      hint: `rankd history show ${missing}`,
    },
  );
}

function tooMany(max: number): RankdError {
  return new RankdError('usage', `More than ${max} changes are selected, too many for the page.`, {
    hint: 'preview them in a shell: `rankd history undo --key KEY --since 1h --dry-run`',
  });
}

function emptyUndo(undoId: string): RankdError {
  return new RankdError('not_found', `Undo ${undoId} does not exist, or changed nothing.`, {
    hint: 'rankd audit list --action history.undo',
  });
}

/** Restores the members with `runMany`. Unless it is a dry run, records the start and the result in the audit log. */
export async function runUndo(
  app: Ranking,
  {
    members,
    answered = [],
    changes,
    command,
  }: Pick<UndoTargets, 'members' | 'changes'> & {
    answered?: UndoTargets['answered'];
    command: UndoCommand;
  },
  control: { stop: AbortSignal; report: (done: number) => void },
): Promise<UndoRun> {
  const { selection, undoId, by, dryRun } = command;
  const record = async (does: 'begin' | 'end', result = {}) => {
    const { since, until, keyId, ...rest } = selection;
    const keyName = keyId === undefined ? undefined : (await app.store.findKey(keyId))?.name;
    const times = { since: isoOf(since), until: isoOf(until) };
    const undone = { ...rest, ...times, keyId, keyName, changes, members: members.length + answered.length, ...result };
    await app.store.appendAudit(historyUndone({ undoId, does }, undone, { by, at: app.clock.now() }));
  };
  if (!dryRun) await record('begin');
  const act = {
    act: (rankee: Rankee) => undoMember(app, command, rankee),
    refused: (error: RankdError): MemberUndo => ({ state: 'refused', error }),
  };
  const run = await runMany(app, { members, act }, control);
  if (!dryRun) await record('end', resultOf({ ...run, results: [...run.results, ...answered] }));
  return run;
}

function isoOf(at: number | undefined): string | undefined {
  return at === undefined ? undefined : isoTime(at);
}

function resultOf(run: UndoRun): Record<string, unknown> {
  const counts = undoCounts(run);
  return {
    ...Object.fromEntries(counts.map(({ state, count }) => [state, count])),
    result: undoSummary(run),
    ...(run.error !== undefined && { stoppedBy: run.error.code }),
  };
}

/** The wording for each possible result, in the order used in the summary. */
export const undoWords = {
  put_back: 'put back',
  would_put_back: 'would be put back',
  already: 'already had the previous roles',
  changed_since: 'changed since by someone else, left unchanged',
  left_group: 'no longer in the group',
  refused: 'refused',
  unknown: 'not confirmed yet',
} as const satisfies Record<MemberUndo['state'], string>;

function undoCounts({ results, left }: UndoRun): Array<{ state: string; count: number; words: string }> {
  const states = Object.entries(undoWords).map(([state, words]) => ({
    ...{ state, words },
    count: results.filter((result) => result.state === state).length,
  }));
  return [...states, { state: 'not_reached', count: left.length, words: 'not reached' }].filter(
    ({ count }) => count > 0,
  );
}

/** Returns, for example, `of 4 members, 2 put back; 2 no longer in the group`. */
export function undoSummary(run: UndoRun): string {
  const all = run.results.length + run.left.length;
  return `of ${counted(all, 'member')}, ${undoCounts(run)
    .map(({ count, words }) => `${count} ${words}`)
    .join('; ')}`;
}

/** Marks each result contradicted by a late read as unknown. */
export async function afterLateReads(app: Pick<Ranking, 'store'>, run: UndoRun): Promise<UndoRun> {
  const results = run.results.map(async (result): Promise<Rankee & MemberUndo> => {
    const isApplied = result.state === 'put_back';
    if (!isApplied && result.state !== 'refused') return result;
    const changeId = 'change' in result ? result.change.id : result.changeId;
    if (changeId === undefined || (await isReportStillTrue(app, changeId, { isApplied }))) return result;
    const { rankeeId, rankeeName } = result;
    return { rankeeId, rankeeName, state: 'unknown', changeId, error: outcomeUnknown() };
  });
  return { ...run, results: await Promise.all(results) };
}
