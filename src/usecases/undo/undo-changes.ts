import { type ErrorCode, isRankdError, RankdError } from '../../base/errors.ts';
import { doubling } from '../../base/time.ts';
import { newId } from '../../core/api-key.ts';
import { refusalOfCredential } from '../../core/credential.ts';
import { historyUndone } from '../../core/events.ts';
import { isPseudonym } from '../../core/pseudonym.ts';
import { undoing } from '../../core/undo.ts';
import { callWithin } from '../../ports/call-context.ts';
import type { ChangeSelection } from '../../ports/index.ts';
import { outcomeUnknown } from '../change/change-outcome.ts';
import type { Ranking } from '../change/ranking.ts';
import { type MemberUndo, type Rankee, type UndoCommand, undoMember } from './undo-member.ts';
import { effectiveChanges, isLeftOut, timelineOf } from './undo-timeline.ts';

/** Whom there is to put back according to the history. The platform was not asked yet. */
export interface UndoTargets {
  /** A new id, or that of the earlier run that this one continues. */
  undoId: string;
  /** How many changes are selected. */
  changes: number;
  /** How many more would have been, but are what an undo did. */
  leftOut: number;
  /** Members who may have to be put back: newest change first, members with an open change last. */
  members: Rankee[];
  /** Members for whom the history alone gives the answer. */
  answered: Array<Rankee & MemberUndo>;
}

export interface UndoRun {
  results: Array<Rankee & MemberUndo>;
  /** Members whose turn did not come. */
  left: Rankee[];
  /** What ended the run early, unless it was the operator. */
  error: RankdError | undefined;
}

const sideBySide = 4;
const maxTries = 6;
const maxWaitMs = 30_000;
const waitAfterMs = doubling(1_000, maxWaitMs);
/** The codes that only an operator can mend: trying again later would not help. */
const forTheOperator = new Set<ErrorCode>(['platform_credential', 'config_invalid']);

/**
 * Finds the members of the selected changes, and which of them are left alone or done already. Reads the history of this group only.
 * Throws `not_found` if an undo is selected that changed nothing here, or a change that is not there.
 */
export async function findUndoTargets(
  history: Pick<Ranking, 'store' | 'group'>,
  selection: ChangeSelection,
): Promise<UndoTargets> {
  const found = new Map<number, { rankee: Rankee; selected: Set<string>; hasOpen: boolean }>();
  await requireChanges(history, selection);
  let changes = 0;
  let leftOut = 0;
  for await (const change of effectiveChanges(history, selection)) {
    if (isPseudonym(change.rankeeId)) continue; // nobody knows any more whose roles these were
    if (isLeftOut(change, selection)) {
      leftOut += 1;
      continue;
    }
    changes += 1;
    const { id, rankeeId, rankeeName, state } = change;
    const mine = found.get(rankeeId) ?? { rankee: { rankeeId, rankeeName }, selected: new Set(), hasOpen: false };
    found.set(rankeeId, { ...mine, selected: mine.selected.add(id), hasOpen: mine.hasOpen || state !== 'applied' });
  }
  if (changes === 0 && selection.undoId !== undefined) throw nothingOf(selection.undoId);
  const targets: UndoTargets = { undoId: newId('undo'), changes, leftOut, members: [], answered: [] };
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

function nothingOf(undoId: string): RankdError {
  return new RankdError('not_found', `There is no undo ${undoId} that changed anything.`, {
    hint: 'rankd audit list --action history.undo',
  });
}

/**
 * Puts the members back, a few side by side; `changes` is how many changes that takes back. What can't be done now is tried
 * again for a while. If the platform stays away or refuses the credential, the run ends, as it does on `stop`: members whose turn
 * has come are finished first.
 */
export async function runUndo(
  app: Ranking,
  { members, changes, command }: { members: Rankee[]; changes: number; command: UndoCommand },
  { stop, report }: { stop: AbortSignal; report: (done: number) => void },
): Promise<UndoRun> {
  const { selection, undoId, by, dryRun } = command;
  const undone = { ...selection, changes, members: members.length };
  if (!dryRun) await app.store.appendAudit(historyUndone(undoId, undone, { by, at: app.clock.now() }));
  const run: UndoRun = { results: [], left: [], error: undefined };
  const failed = new AbortController();
  const halt = AbortSignal.any([stop, failed.signal]);
  const queue = members.values();
  const work = async () => {
    for (const rankee of queue) {
      const result = halt.aborted ? undefined : await insist(app, { command, rankee, halt }).catch(giveUp);
      if (result === undefined) run.left.push(rankee);
      else run.results.push({ ...rankee, ...result });
      report(run.results.length);
    }
  };
  const giveUp = (error: unknown) => {
    if (!isRankdError(error)) throw error;
    run.error ??= error;
    failed.abort();
    return undefined;
  };
  await Promise.all(Array.from({ length: sideBySide }, work));
  return run;
}

/** What the run did, after its changes were read once more: one that Roblox was seen not to hold is not confirmed. */
export async function afterLateLooks({ store }: Pick<Ranking, 'store'>, run: UndoRun): Promise<UndoRun> {
  const results = run.results.map(async (result): Promise<Rankee & MemberUndo> => {
    if (result.state !== 'put_back') return result;
    const { id, state } = (await store.findChange(result.change.id)) ?? result.change;
    if (state === 'applied') return result;
    const { rankeeId, rankeeName } = result;
    return { rankeeId, rankeeName, state: 'unknown', changeId: id, error: outcomeUnknown() };
  });
  return { ...run, results: await Promise.all(results) };
}

/** Tries again if that can end differently. `undefined` if it is halted between two tries. */
async function insist(
  app: Ranking,
  { command, rankee, halt }: { command: UndoCommand; rankee: Rankee; halt: AbortSignal },
): Promise<MemberUndo | undefined> {
  for (let tries = 1; !halt.aborted; tries += 1) {
    try {
      return await undoMember(app, command, rankee);
    } catch (error) {
      if (isRankdError(error, 'platform_credential') && (await isAccepted(app))) return { state: 'refused', error };
      if (tries === maxTries || !isRankdError(error) || forTheOperator.has(error.code)) throw error;
      const waitMs = Math.min(Math.max(error.retryAfterMs ?? 0, waitAfterMs(tries - 1)), maxWaitMs);
      await app.clock.sleep(waitMs, halt).catch(() => undefined);
    }
  }
  return undefined;
}

/** True if the platform says that the credential works: then the refusal is about that one member. */
async function isAccepted({ platform, clock, deadlineMs }: Ranking): Promise<boolean> {
  using call = callWithin(clock, deadlineMs, 'operator');
  const credential = await platform.checkCredential(call).catch(() => undefined);
  return credential !== undefined && refusalOfCredential(credential) === undefined;
}
