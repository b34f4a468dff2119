import { RankdError } from '../../base/errors.ts';
import { refusalOfUntouchable } from '../../core/acting-account.ts';
import { mayStillSucceed } from '../../core/change-codes.ts';
import { restoredMessage } from '../../core/describe.ts';
import type { RankChange } from '../../core/model.ts';
import { restorePlan } from '../../core/role-plan.ts';
import { heldIds, isUnlisted, nameForRequest } from '../../core/role-scheme.ts';
import { type GroupScheme, refusalOfMisfit } from '../../core/role-settings.ts';
import { tookEffect, undoing } from '../../core/undo.ts';
import { holdsBefore } from '../../core/undo-holds.ts';
import type { CallContext, ChangeSelection } from '../../ports/index.ts';
import { callWithin } from '../../ports/platform.ts';
import {
  carryOutChange,
  type FinishedChange,
  type Intent,
  recordEnded,
  toRankdError,
} from '../change/change-member.ts';
import { draftOf, resultOf, withPlan } from '../change/change-record.ts';
import { checkUndo, findMember, planConfirmed, withCurrentReach } from '../change/plan-change.ts';
import { QueuePosition } from '../change/queue-position.ts';
import { backgroundDeadlineMs, type ChangeCaller, type Idempotency, type Ranking } from '../change/ranking.ts';

export interface UndoCommand {
  selection: ChangeSelection;
  undoId: string;
  by: string;
  /** If true, the undo only reads and checks, without writing or recording anything. */
  dryRun: boolean;
  /** The Discord user who requested the undo, and the key used for the request; absent for the operator. */
  requester?: { caller: ChangeCaller; rankerId: number; rankerName: string; idempotency?: Idempotency };
}

export type MemberUndo =
  /** `change` is the change that was made or, in a dry run, would be made. */
  | { state: 'put_back' | 'would_put_back'; change: RankChange }
  /** The member already holds the previous roles, or every selected change has already been undone. */
  | { state: 'already' }
  /** Someone else has changed the member since (outside rankd if `byChange` is absent), so the undo changes nothing. */
  | { state: 'changed_since'; byChange?: string }
  | { state: 'left_group' }
  /** `unknown` means that the undo was not confirmed, or that an earlier change is not reconciled yet. */
  | { state: 'refused' | 'unknown'; changeId?: string; error: RankdError };

export type Rankee = Pick<RankChange, 'rankeeId' | 'rankeeName'>;

/**
 * Restores the roles that a member held before the earliest selected change, with a change that is recorded and
 * confirmed like any other. Throws RankdError if a retry may have a different outcome.
 */
export async function undoMember(app: Ranking, command: UndoCommand, rankee: Rankee): Promise<MemberUndo> {
  using call = callWithin(app.clock, backgroundDeadlineMs(app), command.requester?.caller.keyId ?? 'operator');
  const draft = draftFor(app, command, rankee);
  try {
    return await (command.dryRun ? dryRunUndo : undoInTurn)(app, { command, draft }, call);
  } catch (cause) {
    const error = toRankdError(cause, call);
    if (error.code === 'outcome_unknown') return { state: 'unknown', error };
    if (error.code === 'member_not_found') return { state: 'left_group' };
    if (mayStillSucceed(error.code)) throw error;
    if (command.dryRun) return { state: 'refused', error };
    const { change } = await recordEnded(app, draft, resultOf(error));
    return { state: 'refused', changeId: change.id, error };
  }
}

interface UndoTask {
  command: UndoCommand;
  draft: RankChange;
}

/**
 * Waits for the member's turn, then plans and carries out the undo. Starts over if another node changed the member
 * first, or if the group's roles have changed.
 */
async function undoInTurn(app: Ranking, task: UndoTask, call: CallContext): Promise<MemberUndo> {
  await using position = new QueuePosition(app, { rankeeId: task.draft.rankeeId, lane: call.lane });
  for (;;) {
    const after = await position.waitForTurn(call);
    const approval = await withCurrentReach(app, call, () => approve(app, task, call));
    if ('answer' in approval) return approval.answer;
    const result = await carryOutChange(app, { ...approval, after }, call);
    if (result !== 'stale') return outcomeOf(result);
  }
}

/** Plans the undo without waiting for the member's turn, because waiting would reconcile an open change. */
async function dryRunUndo(app: Ranking, task: UndoTask, call: CallContext): Promise<MemberUndo> {
  const { open } = await app.store.latestChange(task.draft.rankeeId);
  if (open !== undefined) {
    const { id } = open.change;
    const error = new RankdError('outcome_unknown', `Change ${id} is not reconciled yet; an undo reconciles it first.`);
    return { state: 'unknown', changeId: id, error };
  }
  const approval = await withCurrentReach(app, call, () => approve(app, task, call));
  if ('answer' in approval) return approval.answer;
  return { state: 'would_put_back', change: { ...approval.change, message: approval.success } };
}

/** Plans and checks the undo. Returns the change to make, or the outcome if no change is needed. Throws the refusal. */
async function approve(
  app: Ranking,
  { command, draft }: UndoTask,
  call: CallContext,
): Promise<Omit<Intent, 'after'> | { answer: MemberUndo }> {
  const { rankeeId } = draft;
  const selected = new Set<string>();
  for await (const { id } of selectedChanges(app, { ...command.selection, rankeeId })) selected.add(id);
  const timeline = await timelineOf(app, { rankeeId, selected });
  const [newest] = timeline;
  const todo = undoing(timeline, ({ id }) => selected.has(id));
  if (newest === undefined || todo.kind === 'already') return { answer: { state: 'already' } };
  if (todo.kind === 'changed_since') return { answer: { state: 'changed_since', byChange: todo.by.id } };

  const acting = await app.group.acting(call);
  const untouchable = refusalOfUntouchable(rankeeId, acting);
  if (untouchable !== undefined) throw untouchable;
  const found = await findMember(app, { userId: rankeeId }, call);
  const holds = await app.store.listHolds({ group: app.group.title, rankeeId, limit: maxHolds });
  const planRestore = async (scheme: GroupScheme) => {
    const misfit = refusalOfMisfit(scheme, 'everything');
    if (misfit !== undefined) throw misfit;
    const restored = holdsBefore(todo.earliest, { holds, roles: scheme.roles, now: app.clock.now() });
    if (restored instanceof RankdError) throw restored;
    return { restored, plan: restorePlan(scheme, found.member, restored.roles) };
  };
  const { plan, scheme, restored } = await planConfirmed(app, found, planRestore, call);
  if (plan.steps.length === 0 && !restored.changesHolds) return { answer: { state: 'already' } };
  const listed = (ids: number[]) => ids.filter((id) => !isUnlisted(scheme.roles, id)).join();
  if (listed(heldIds(scheme.roles, { roleIds: newest.rolesAfter })) !== listed(plan.goal.from))
    return { answer: { state: 'changed_since' } };
  const newRankId = nameForRequest(scheme, plan.target);
  const approved = checkUndo(app, { request: draft, plan, scheme, newRankId, acting });
  const success = restoredMessage(draft, { scheme, plan, between: todo.between }) + restored.sentence;
  const change = { ...withPlan(draft, approved), newRankId, undoOf: todo.earliest.id };
  return { change: { ...change, ...(restored.part !== undefined && { hold: restored.part }) }, approved, success };
}

/** Far more holds than any member has. */
const maxHolds = 1_000;

/** Returns the record of an undo before it is planned, and therefore without a rank. */
function draftFor(app: Ranking, { by, dryRun, undoId, requester }: UndoCommand, rankee: Rankee): RankChange {
  const { rankerId = 0, rankerName = 'operator', caller = { by, dryRun }, idempotency } = requester ?? {};
  const command = requester === undefined ? 'rankd history undo' : '/undo';
  const request = { ...rankee, rankerId, rankerName, newRankId: 0, command };
  return { ...draftOf(app, { caller, request, ...(idempotency && { idempotency }) }), undoId };
}

/**
 * Converts a finished change into the member's outcome. Throws the change's error if a retry may have a different
 * outcome.
 */
function outcomeOf({ change, error }: FinishedChange): MemberUndo {
  if (change.state === 'applied') return { state: 'put_back', change };
  const why = error ?? new RankdError(change.code ?? 'outcome_unknown', change.message);
  if (change.state === 'unknown') return { state: 'unknown', changeId: change.id, error: why };
  if (mayStillSucceed(why.code)) throw why;
  return { state: 'refused', changeId: change.id, error: why };
}

type History = Pick<Ranking, 'store' | 'group'>;

const pageRows = 200;

/**
 * Yields the selected changes that took effect or may have done so, newest first, except those that `isLeftOut`
 * excludes.
 */
export async function* selectedChanges(history: History, selection: ChangeSelection): AsyncGenerator<RankChange> {
  for await (const change of effectiveChanges(history, selection)) if (!isLeftOut(change, selection)) yield change;
}

/** Yields the selected changes that took effect or may have done so, newest first, including changes made by undos. */
export async function* effectiveChanges(history: History, selection: ChangeSelection): AsyncGenerator<RankChange> {
  const asked = { ...selection, states: ['applied', 'pending', 'unknown'] satisfies RankChange['state'][] };
  for await (const change of allChanges(history, asked))
    if (change.state !== 'applied' || tookEffect(change)) yield change;
}

/**
 * True for a change made by an undo, unless the selection names the undo or the change: undoing a raid twice must not
 * reinstate the raid's changes.
 */
export function isLeftOut({ undoId }: RankChange, selection: ChangeSelection): boolean {
  return undoId !== undefined && selection.undoId === undefined && selection.ids === undefined;
}

/** Returns the changes that took effect on a member, newest first, as far back as the undo needs. */
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
