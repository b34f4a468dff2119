import type { Deadline } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import { successMessage } from '../../core/describe.ts';
import type { RankChange } from '../../core/model.ts';
import type { CallContext } from '../../ports/index.ts';
import type { ChangeCommand } from './change-command.ts';
import { asRefusal, changeMember, type Decided, type Ended, record } from './change-member.ts';
import { endingOf } from './change-outcome.ts';
import { draftOf, planned } from './change-record.ts';
import { checkPlan, type Decision, planChange } from './decide-change.ts';
import { earlierAnswer, refuseWhileRunning, whileRunning } from './idempotency.ts';
import { maxOfALane } from './member-turns.ts';
import { QueuePosition } from './queue-position.ts';
import type { Ranking } from './ranking.ts';

export interface ChangeAnswer extends Ended {
  /** True where this is the outcome of an earlier request with the same idempotency key; then there is no `error`. */
  replayed: boolean;
}

/**
 * Changes one member's rank, or says why not. Every answer is kept in the history first.
 * Throws only where there is no change to speak of: idempotency conflicts, too many for one member at once, a step that has come
 * to no rank, or a store that can't keep it.
 */
export async function changeRank(app: Ranking, command: ChangeCommand, deadline: Deadline): Promise<ChangeAnswer> {
  refuseWhileRunning(app, command);
  const [rankeeId, lane] = [command.request.rankeeId, command.caller.keyId ?? 'operator'];
  // Before anything is waited for: in order of arrival.
  await using place = app.turns.isCrowded(rankeeId, lane) ? undefined : new QueuePosition(app, { rankeeId, lane });
  const earlier = await earlierAnswer(app, command);
  if (earlier !== undefined) return { change: earlier, replayed: true };
  if (place === undefined) throw tooMany(rankeeId);
  return await whileRunning(app, command, async () => {
    const draft = draftOf(app, command);
    let asked = command.step === undefined ? draft : undefined; // a step asks for no rank that could be kept before it is known
    const call: CallContext = { signal: deadline.signal, deadlineAt: deadline.at, lane };
    const decide = async () => {
      const question = { ...command, key: command.caller.rules };
      const proposal = await planChange(app, question, call);
      asked = { ...draft, newRankId: proposal.newRankId };
      await checkPlan(app, { ...question, ...proposal }, call);
      return decided(app, asked, proposal);
    };
    try {
      return { ...(await changeMember(app, place, decide, call)), replayed: false };
    } catch (cause) {
      const error = asRefusal(cause, call);
      if (asked === undefined || error.code === 'store_unavailable' || error.code === 'outcome_unknown') throw error;
      return { ...(await record(app, asked, endingOf(error))), replayed: false };
    }
  });
}

/** A change that nothing speaks against is to be written, or is kept at once where there is nothing to write. */
async function decided(app: Ranking, draft: RankChange, { plan, scheme }: Decision): Promise<Decided<Ended>> {
  const change = planned(draft, { plan, scheme });
  const success = successMessage(draft, scheme, plan);
  if (!draft.dryRun && plan.steps.length > 0) return { intent: { change, steps: plan.steps, scheme, success } };
  return { answer: await record(app, change, { outcome: { state: 'applied', code: null, message: success } }) };
}

function tooMany(userId: number): RankdError {
  const message = `${maxOfALane} changes of member ${userId} that this key asked for are still under way. Send the next one when one of them is through.`;
  return new RankdError('too_many_requests', message, { retryAfterMs: 1_000 });
}
