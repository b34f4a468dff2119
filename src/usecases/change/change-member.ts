import { RankdError } from '../../base/errors.ts';
import type { RankChange } from '../../core/model.ts';
import type { CallContext, MemberLimit } from '../../ports/index.ts';
import { applyChange, type Intent } from './apply-change.ts';
import { type Ending, isKept, outcomeUnknown } from './change-outcome.ts';
import { ended } from './change-record.ts';
import type { QueuePosition } from './queue-position.ts';
import type { Ranking } from './ranking.ts';
import { isAbandoned, reconcileChange } from './reconcile-change.ts';

/** A change as the history keeps it; `state` says how it ended, `error` what a change that is not applied ended with. */
export interface Ended {
  change: RankChange;
  error?: RankdError | undefined;
}

/** What was decided of a member: something to write, or an answer without a write. */
export type Decided<Answer> = { intent: Intent } | { answer: Answer };

const pollMs = 50;
/** Of what the breaker lets one key do, how many times all keys together. */
const allKeysShare = 3;

/**
 * Changes the member of `place` as `decide` says, in order of arrival among all that want to change this member: it is asked in
 * the member's turn, with no change of theirs open, and once more where another process came first.
 */
export async function changeMember<Answer>(
  app: Ranking,
  place: QueuePosition,
  decide: () => Promise<Decided<Answer>>,
  call: CallContext,
): Promise<Ended | Answer> {
  await place.turn(call.signal);
  for (;;) {
    const isNext = await place.isNext();
    const { latestId, open } = await app.store.latestChange(place.rankeeId);
    if (open !== undefined && isAbandoned(app, open) && (await reconcileFirst(app, open, call))) continue;
    if (open !== undefined || !isNext) {
      await place.hold();
      await app.clock.sleep(pollMs, call.signal);
      continue;
    }
    const decided = await decide();
    if ('answer' in decided) return decided.answer;
    // For every write of it: a change is not begun that could not be carried to its end.
    const kinds = decided.intent.steps.map(({ kind }) => kind);
    using reservation = await app.platform.reserve(kinds, call);
    const done = await begun(app, { intent: decided.intent, after: latestId }, { ...call, reservation });
    if (done !== 'conflict') return done;
  }
}

/** Time that ran out before any write was sent is a busy platform, not an unknown outcome. */
export function asRefusal(cause: unknown, call: CallContext): RankdError {
  if (cause instanceof RankdError) return cause;
  if (call.signal.aborted) {
    return new RankdError('platform_busy', 'The change could not begin in time; nothing was changed. Try again.', {
      cause,
      retryAfterMs: 5_000,
    });
  }
  throw cause;
}

/** Keeps a change that ended without a write. */
export async function record(app: Ranking, change: RankChange, { outcome, error }: Ending): Promise<Ended> {
  const { idempotencyKey, ...rest } = ended(change, outcome, app.clock.now());
  const kept = { ...rest, ...(idempotencyKey !== undefined && isKept(outcome.code) && { idempotencyKey }) };
  await app.store.recordChange(kept);
  return { change: kept, error };
}

/** Keeps the intent, does the work, keeps the outcome. `conflict`: another process came first; what was read may be stale. */
async function begun(
  app: Ranking,
  { intent, after }: { intent: Intent; after: string | undefined },
  call: CallContext,
): Promise<Ended | 'conflict'> {
  const { change } = intent;
  app.inHand.add(change.id);
  try {
    const isBegun = await app.store.beginChange(change, {
      after,
      limits: breakerLimits(app),
      rankerCooldownMs: app.policy.rankerCooldownMs,
    });
    return isBegun ? await finish(app, change, () => applyChange(app, intent, call)) : 'conflict';
  } finally {
    app.inHand.delete(change.id);
  }
}

/** From here on, what goes wrong on our side leaves the row open: it is settled by reading once that is mended. */
async function finish(app: Ranking, change: RankChange, work: () => Promise<Ending>): Promise<Ended> {
  try {
    const { outcome, error } = await work();
    app.written.note(change.rankeeId);
    const rolesAfter = outcome.rolesAfter ?? (outcome.state === 'unknown' ? undefined : change.rolesBefore);
    const isOurs = await app.store.finishChange(change.id, { ...outcome, rolesAfter });
    const settled = isOurs ? undefined : await app.store.findChange(change.id);
    if (settled !== undefined) return { change: settled };
    return { change: ended(change, outcome, app.clock.now()), error };
  } catch (cause) {
    throw outcomeUnknown(cause);
  }
}

/** An earlier change of the member that nobody works on any more comes to its end before the next one begins; false where another process is at it. */
async function reconcileFirst(app: Ranking, open: RankChange, call: CallContext): Promise<boolean> {
  try {
    return await reconcileChange(app, open, call);
  } catch (cause) {
    const message = `An earlier change of member ${open.rankeeId} is still being found out.`;
    const hint = cause instanceof RankdError ? cause.hint : undefined;
    throw new RankdError('platform_unavailable', message, { hint, cause, retryAfterMs: 5_000 });
  }
}

function breakerLimits({ breaker, clock }: Ranking): MemberLimit[] {
  if (breaker === undefined) return [];
  const { demotions, highRank, highChanges, windowMs } = breaker;
  const since = clock.now() - windowMs;
  const limit = (of: MemberLimit['of'], most: number) => ({ of, since, byKey: most, byAll: allKeysShare * most });
  return [
    limit('demotions', demotions),
    ...(highRank === undefined ? [] : [limit({ fromRank: highRank }, highChanges)]),
  ];
}
