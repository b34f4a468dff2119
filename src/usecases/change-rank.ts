import type { Deadline } from '../clock.ts';
import { newId } from '../core/api-key.ts';
import { memberTitle, roleTitle } from '../core/describe.ts';
import type { RankChange, RankRequest } from '../core/model.ts';
import type { RolePlan, RoleScheme } from '../core/role-plan.ts';
import { RankdError } from '../errors.ts';
import type { CallContext, ChangeOutcome } from '../ports.ts';
import { applyChange } from './apply-change.ts';
import { isKept, outcomeOf, outcomeUnknown } from './change-outcome.ts';
import { decideChange } from './decide-change.ts';
import { earlierAnswer, type Idempotency, whileRunning } from './idempotency.ts';
import { PlaceInLine } from './place-in-line.ts';
import type { Ranking } from './ranking.ts';
import { isAbandoned, settleChange } from './settle-change.ts';

/** Who asks for a change, and how far this caller may go. */
export interface ChangeCaller {
  /** As history and audit name it: `key:<id>` or `cli:<user>@<host>`. */
  by: string;
  keyId?: string;
  placeId?: number;
  /** The key's own ceiling. */
  maxRank?: number;
  /** True for a test key: everything is checked and answered, nothing is written. */
  dryRun: boolean;
}

export interface ChangeOrder {
  caller: ChangeCaller;
  request: RankRequest;
  idempotency?: Idempotency;
}

/** The change as the history keeps it; `state` says how it ended. */
export interface ChangeAnswer {
  change: RankChange;
  /** True where this is the outcome of an earlier request with the same idempotency key. */
  replayed: boolean;
  retryAfterMs?: number;
}

const pollMs = 50;

/**
 * Changes one member's rank, or says why not. Every answer is kept in the history first.
 * Throws only where there is no change to speak of: idempotency conflicts, or a store that can't keep it.
 */
export async function changeRank(app: Ranking, order: ChangeOrder, deadline: Deadline): Promise<ChangeAnswer> {
  const earlier = await earlierAnswer(app, order);
  if (earlier !== undefined) return { change: earlier, replayed: true };
  return whileRunning(app, order, async () => {
    const draft = draftOf(app, order);
    const call: CallContext = {
      signal: deadline.signal,
      deadlineAt: deadline.at,
      lane: order.caller.keyId ?? 'operator',
    };
    const { rankeeId } = draft;
    await using place = new PlaceInLine(app, { rankeeId, mustWait: app.turns.isBusy(rankeeId) });
    try {
      const change = await app.turns.run(rankeeId, call.signal, () => inTurn(app, { order, draft, place }, call));
      return { change, replayed: false };
    } catch (cause) {
      const error = asRefusal(cause, call);
      if (error.code === 'store_unavailable' || error.code === 'outcome_unknown') throw error;
      return { change: await recordRefusal(app, draft, error), replayed: false, ...retryOf(error) };
    }
  });
}

async function inTurn(
  app: Ranking,
  { order, draft, place }: { order: ChangeOrder; draft: RankChange; place: PlaceInLine },
  call: CallContext,
): Promise<RankChange> {
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
    const { plan, scheme } = await decideChange(app, { request, keyMaxRank: caller.maxRank }, call);
    const change = planned(draft, plan);
    if (draft.dryRun || plan.steps.length === 0) return record(app, change, applied(change, scheme, plan));
    const outcome = await begun(app, { change, after: latestId }, () =>
      applyChange(app, { change, plan, scheme, success: saySuccess(change, scheme, plan) }, call),
    );
    if (outcome !== 'conflict') return outcome;
  }
}

/** Keeps the intent, does the work, keeps the outcome. `conflict`: another process came first; what was read may be stale. */
async function begun(
  app: Ranking,
  { change, after }: { change: RankChange; after: string | undefined },
  work: () => Promise<ChangeOutcome>,
): Promise<RankChange | 'conflict'> {
  app.inHand.add(change.id);
  try {
    const isBegun = await app.store.beginChange(change, { after, ...demotionLimit(app, change) });
    return isBegun ? await finish(app, change, work) : 'conflict';
  } finally {
    app.inHand.delete(change.id);
  }
}

/** From here on, what goes wrong on our side leaves the row open: it is settled by reading once that is mended. */
async function finish(app: Ranking, change: RankChange, work: () => Promise<ChangeOutcome>): Promise<RankChange> {
  try {
    const outcome = await work();
    const rolesAfter = outcome.rolesAfter ?? (outcome.state === 'unknown' ? undefined : change.rolesBefore);
    const isOurs = await app.store.finishChange(change.id, {
      ...outcome,
      ...(rolesAfter !== undefined && { rolesAfter }),
    });
    const settled = isOurs ? undefined : await app.store.findChange(change.id);
    return settled ?? ended(app, change, outcome);
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

function draftOf(app: Ranking, { caller, request, idempotency }: ChangeOrder): RankChange {
  return {
    ...request,
    id: newId('chg'),
    state: 'pending',
    code: null,
    message: '',
    rolesBefore: [],
    rolesAfter: [],
    aim: 'apply',
    by: caller.by,
    ...(caller.keyId !== undefined && { keyId: caller.keyId }),
    ...(caller.placeId !== undefined && { placeId: caller.placeId }),
    ...(idempotency !== undefined && { idempotencyKey: idempotency.key, fingerprint: idempotency.fingerprint }),
    dryRun: caller.dryRun,
    demotion: false,
    requestedAt: app.clock.now(),
  };
}

function planned(draft: RankChange, plan: RolePlan): RankChange {
  return {
    ...draft,
    roleId: plan.target.id,
    rolesBefore: plan.goal.from,
    rolesAfter: plan.goal.to,
    demotion: plan.rankAfter < plan.rankBefore,
  };
}

function demotionLimit({ breaker, clock }: Ranking, { keyId, demotion }: RankChange) {
  if (breaker === undefined || keyId === undefined || !demotion) return {};
  const { demotions, windowMs } = breaker;
  return { demotions: { since: clock.now() - windowMs, byKey: demotions, byAll: 3 * demotions } };
}

function applied(change: RankChange, scheme: RoleScheme, plan: RolePlan): ChangeOutcome {
  return { state: 'applied', code: null, message: saySuccess(change, scheme, plan) };
}

async function recordRefusal(app: Ranking, draft: RankChange, error: RankdError): Promise<RankChange> {
  return record(app, draft, outcomeOf(error));
}

async function record(app: Ranking, change: RankChange, outcome: ChangeOutcome): Promise<RankChange> {
  const { idempotencyKey, ...rest } = ended(app, change, outcome);
  const kept = { ...rest, ...(idempotencyKey !== undefined && isKept(outcome.code) && { idempotencyKey }) };
  await app.store.recordChange(kept);
  return kept;
}

function ended(app: Ranking, change: RankChange, { state, code, message, rolesAfter }: ChangeOutcome): RankChange {
  const prefix = change.dryRun ? 'Test key, nothing changed: ' : '';
  return {
    ...change,
    state,
    code,
    message: prefix + message,
    rolesAfter: rolesAfter ?? (state === 'applied' ? change.rolesAfter : change.rolesBefore),
    ...(state !== 'unknown' && { finishedAt: app.clock.now() }),
  };
}

function saySuccess(request: RankRequest, { roles }: RoleScheme, plan: RolePlan): string {
  const who = memberTitle(request);
  if (plan.steps.length === 0) return `${who} already is ${roleTitle(plan.target)}.`;
  const old = roles.filter((role) => plan.goal.from.includes(role.id) && role.rank === plan.rankBefore).at(-1);
  return `${who} is now ${roleTitle(plan.target)}${old === undefined ? '' : `, was ${roleTitle(old)}`}.`;
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

function retryOf({ retryAfterMs }: RankdError): { retryAfterMs?: number } {
  return retryAfterMs === undefined ? {} : { retryAfterMs };
}
