import type { Deadline } from '../clock.ts';
import { successMessage } from '../core/describe.ts';
import type { RankChange } from '../core/model.ts';
import { RankdError } from '../errors.ts';
import type { CallContext } from '../ports.ts';
import { applyChange } from './apply-change.ts';
import { type Ending, endingOf, isKept, outcomeUnknown } from './change-outcome.ts';
import { type ChangeOrder, draftOf, ended, planned } from './change-record.ts';
import { decideChange } from './decide-change.ts';
import { earlierAnswer, whileRunning } from './idempotency.ts';
import { PlaceInLine } from './place-in-line.ts';
import type { Ranking } from './ranking.ts';
import { isAbandoned, settleChange } from './settle-change.ts';

/** The change as the history keeps it; `state` says how it ended. */
export interface ChangeAnswer {
  change: RankChange;
  /** True where this is the outcome of an earlier request with the same idempotency key. */
  replayed: boolean;
  /** What a change that was not applied ended with; absent for a replay. */
  error?: RankdError;
}

type Ended = Omit<ChangeAnswer, 'replayed'>;

const pollMs = 50;

/**
 * Changes one member's rank, or says why not. Every answer is kept in the history first.
 * Throws only where there is no change to speak of: idempotency conflicts, or a store that can't keep it.
 */
export async function changeRank(app: Ranking, order: ChangeOrder, deadline: Deadline): Promise<ChangeAnswer> {
  const earlier = await earlierAnswer(app, order);
  if (earlier !== undefined) return { change: earlier, replayed: true };
  return whileRunning(app, order, async () => {
    const draft = draftOf(order, app.clock.now());
    const call: CallContext = {
      signal: deadline.signal,
      deadlineAt: deadline.at,
      lane: order.caller.keyId ?? 'operator',
    };
    const { rankeeId } = draft;
    await using place = new PlaceInLine(app, { rankeeId, mustWait: app.turns.isBusy(rankeeId) });
    try {
      const done = await app.turns.run(rankeeId, call.signal, () => inTurn(app, { order, draft, place }, call));
      return { ...done, replayed: false };
    } catch (cause) {
      const error = asRefusal(cause, call);
      if (error.code === 'store_unavailable' || error.code === 'outcome_unknown') throw error;
      return { ...(await record(app, draft, endingOf(error))), replayed: false };
    }
  });
}

async function inTurn(
  app: Ranking,
  { order, draft, place }: { order: ChangeOrder; draft: RankChange; place: PlaceInLine },
  call: CallContext,
): Promise<Ended> {
  for (;;) {
    const isNext = await place.isNext();
    const { latestId, open } = await app.store.latestChange(draft.rankeeId);
    if (open !== undefined && isAbandoned(app, open)) {
      await settleFirst(app, open, call);
      continue;
    }
    if (open !== undefined || !isNext) {
      await place.hold();
      await app.clock.sleep(pollMs, call.signal);
      continue;
    }
    const { request, caller } = order;
    const { plan, scheme } = await decideChange(app, { request, key: caller.rules }, call);
    const change = planned(draft, plan);
    const success = successMessage(request, scheme, plan);
    if (draft.dryRun || plan.steps.length === 0) {
      return record(app, change, { outcome: { state: 'applied', code: null, message: success } });
    }
    const done = await begun(app, { change, after: latestId }, () =>
      applyChange(app, { change, plan, scheme, success }, call),
    );
    if (done !== 'conflict') return done;
  }
}

/** Keeps the intent, does the work, keeps the outcome. `conflict`: another process came first; what was read may be stale. */
async function begun(
  app: Ranking,
  { change, after }: { change: RankChange; after: string | undefined },
  work: () => Promise<Ending>,
): Promise<Ended | 'conflict'> {
  app.inHand.add(change.id);
  try {
    const isBegun = await app.store.beginChange(change, { after, ...demotionLimit(app, change) });
    return isBegun ? await finish(app, change, work) : 'conflict';
  } finally {
    app.inHand.delete(change.id);
  }
}

/** From here on, what goes wrong on our side leaves the row open: it is settled by reading once that is mended. */
async function finish(app: Ranking, change: RankChange, work: () => Promise<Ending>): Promise<Ended> {
  try {
    const { outcome, error } = await work();
    const rolesAfter = outcome.rolesAfter ?? (outcome.state === 'unknown' ? undefined : change.rolesBefore);
    const isOurs = await app.store.finishChange(change.id, {
      ...outcome,
      ...(rolesAfter !== undefined && { rolesAfter }),
    });
    const settled = isOurs ? undefined : await app.store.findChange(change.id);
    if (settled !== undefined) return { change: settled };
    return { change: ended(change, outcome, app.clock.now()), ...(error !== undefined && { error }) };
  } catch (cause) {
    throw outcomeUnknown(cause);
  }
}

/** An earlier change of the member that nobody works on any more comes to its end before the next one begins. */
async function settleFirst(app: Ranking, open: RankChange, call: CallContext): Promise<void> {
  try {
    await settleChange(app, open, call);
  } catch (cause) {
    const message = `An earlier change of member ${open.rankeeId} is still being found out.`;
    throw new RankdError('platform_unavailable', message, { cause, retryAfterMs: 5_000 });
  }
}

function demotionLimit({ breaker, clock }: Ranking, { keyId, demotion }: RankChange) {
  if (breaker === undefined || keyId === undefined || !demotion) return {};
  const { demotions, windowMs } = breaker;
  return { demotions: { since: clock.now() - windowMs, byKey: demotions, byAll: 3 * demotions } };
}

/** Keeps a change that ended without a write. */
async function record(app: Ranking, change: RankChange, { outcome, error }: Ending): Promise<Ended> {
  const { idempotencyKey, ...rest } = ended(change, outcome, app.clock.now());
  const kept = { ...rest, ...(idempotencyKey !== undefined && isKept(outcome.code) && { idempotencyKey }) };
  await app.store.recordChange(kept);
  return { change: kept, ...(error !== undefined && { error }) };
}

/** Time that ran out before any write was sent is a busy platform, not an unknown outcome. */
function asRefusal(cause: unknown, call: CallContext): RankdError {
  if (cause instanceof RankdError) return cause;
  if (call.signal.aborted) {
    return new RankdError('platform_busy', 'The change could not begin in time; nothing was changed. Try again.', {
      cause,
      retryAfterMs: 5_000,
    });
  }
  throw cause;
}
