import { RankdError } from '../../base/errors.ts';
import { refusalOfUntouchable } from '../../core/acting-account.ts';
import { restoredMessage } from '../../core/describe.ts';
import type { RankChange } from '../../core/model.ts';
import { restorePlan } from '../../core/role-plan.ts';
import { heldRoles, nameForRequest, roleIds } from '../../core/role-scheme.ts';
import { undoing } from '../../core/undo.ts';
import { refusalOfUndo } from '../../core/undo-rules.ts';
import { callWithin } from '../../ports/call-context.ts';
import type { CallContext, ChangeSelection } from '../../ports/index.ts';
import { asRefusal, changeMember, type Decided, type Ended, record } from '../change/change-member.ts';
import { endingOf, isPassing } from '../change/change-outcome.ts';
import { draftOf, planned } from '../change/change-record.ts';
import { findMember } from '../change/decide-change.ts';
import { QueuePosition } from '../change/queue-position.ts';
import { backgroundDeadlineMs, type Ranking } from '../change/ranking.ts';
import { selectedChanges, timelineOf } from './undo-timeline.ts';

/** Which changes to take back, and for whom. */
export interface UndoOrder {
  selection: ChangeSelection;
  undoId: string;
  /** The operator, as history and audit name them. */
  by: string;
  /** Everything is looked at and decided; nothing is written or kept. */
  dryRun: boolean;
}

/** What became of one member. */
export type MemberUndo =
  /** `change` is what was done, or would be. */
  | { state: 'put_back' | 'would_put_back'; change: RankChange }
  /** Holds the roles from before already. */
  | { state: 'already' }
  /** Left alone: somebody else has changed the member since; `byChange` is absent where that was not through rankd. */
  | { state: 'changed_since'; byChange?: string }
  | { state: 'left_group' }
  /** `unknown`: not confirmed, or an earlier change is not settled yet. */
  | { state: 'refused' | 'unknown'; changeId?: string; error: RankdError };

export type Rankee = Pick<RankChange, 'rankeeId' | 'rankeeName'>;

/**
 * Puts one member back to the roles from before the earliest selected change, in the member's turn and through the same
 * intent, writes and confirmation as any change. Throws RankdError where trying again can end differently.
 */
export async function undoMember(app: Ranking, order: UndoOrder, rankee: Rankee): Promise<MemberUndo> {
  using call = callWithin(app.clock, backgroundDeadlineMs(app), 'operator');
  const draft = draftFor(app, order, rankee);
  const work = () => decide(app, { order, draft }, call);
  try {
    const done = order.dryRun ? await rehearse(app, rankee, work) : await inTurn(app, rankee, work, call);
    return 'state' in done ? done : outcomeOf(done);
  } catch (cause) {
    const error = asRefusal(cause, call);
    if (error.code === 'outcome_unknown') return { state: 'unknown', error };
    if (error.code === 'member_not_found') return { state: 'left_group' };
    if (isPassing(error.code)) throw error;
    if (order.dryRun) return { state: 'refused', error };
    const { change } = await record(app, draft, endingOf(error));
    return { state: 'refused', changeId: change.id, error };
  }
}

async function inTurn(
  app: Ranking,
  { rankeeId }: Rankee,
  work: () => Promise<Decided<MemberUndo>>,
  call: CallContext,
): Promise<Ended | MemberUndo> {
  await using place = new QueuePosition(app, { rankeeId, lane: call.lane });
  return await changeMember(app, place, work, call);
}

/** Decides without the member's turn, which would settle what is open. */
async function rehearse(
  { store }: Ranking,
  { rankeeId }: Rankee,
  work: () => Promise<Decided<MemberUndo>>,
): Promise<MemberUndo> {
  const { open } = await store.latestChange(rankeeId);
  if (open !== undefined) {
    const error = new RankdError('outcome_unknown', `Change ${open.id} is not settled yet; an undo settles it first.`);
    return { state: 'unknown', changeId: open.id, error };
  }
  const decided = await work();
  if ('answer' in decided) return decided.answer;
  const { change, success } = decided.intent;
  return { state: 'would_put_back', change: { ...change, message: success } };
}

async function decide(
  app: Ranking,
  { order, draft }: { order: UndoOrder; draft: RankChange },
  call: CallContext,
): Promise<Decided<MemberUndo>> {
  const { rankeeId } = draft;
  const selected = new Set<string>();
  for await (const { id } of selectedChanges(app, { ...order.selection, rankeeId })) selected.add(id);
  const timeline = await timelineOf(app, { rankeeId, selected });
  const [newest] = timeline;
  const todo = undoing(timeline, ({ id }) => selected.has(id));
  if (newest === undefined || todo.kind === 'already') return { answer: { state: 'already' } };
  if (todo.kind === 'changed_since') return { answer: { state: 'changed_since', byChange: todo.by.id } };

  const acting = await app.group.acting(call);
  const untouchable = refusalOfUntouchable(rankeeId, acting);
  if (untouchable !== undefined) throw untouchable;
  const { member, scheme } = await findMember(app, rankeeId, call);
  const plan = restorePlan(scheme, member, todo.earliest.rolesBefore);
  if (plan.steps.length === 0) return { answer: { state: 'already' } };
  const left = heldRoles(scheme.roles, { ...member, roleIds: newest.rolesAfter });
  if (roleIds(left).join() !== plan.goal.from.join()) return { answer: { state: 'changed_since' } };
  const refusal = refusalOfUndo({ policy: app.policy, request: draft, scheme, plan, acting });
  if (refusal !== undefined) throw refusal;
  const success = restoredMessage(draft, { scheme, plan, between: todo.between });
  const change = {
    ...planned(draft, { plan, scheme }),
    newRankId: nameForRequest(scheme, plan.target),
    undoOf: todo.earliest.id,
  };
  return { intent: { change, steps: plan.steps, scheme, success } };
}

/** The record of an undo that is not decided yet; which rank it comes to is known then. */
function draftFor(app: Ranking, { by, dryRun, undoId }: UndoOrder, rankee: Rankee): RankChange {
  const request = { ...rankee, rankerId: 0, rankerName: 'operator', newRankId: 0, command: 'rankd history undo' };
  return { ...draftOf(app, { caller: { by, dryRun }, request }), undoId };
}

/** Throws what trying again can end differently. */
function outcomeOf({ change, error }: Ended): MemberUndo {
  if (change.state === 'applied') return { state: 'put_back', change };
  const why = error ?? new RankdError(change.code ?? 'outcome_unknown', change.message);
  if (change.state === 'unknown') return { state: 'unknown', changeId: change.id, error: why };
  if (isPassing(why.code)) throw why;
  return { state: 'refused', changeId: change.id, error: why };
}
