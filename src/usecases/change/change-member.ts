import { RankdError } from '../../base/errors.ts';
import { newChangeId } from '../../core/api-key.ts';
import { judgeBegin, type MemberLimit } from '../../core/begin.ts';
import { isReplayed } from '../../core/change-codes.ts';
import type { ChangeOutcome } from '../../core/change-state.ts';
import { changeEvent } from '../../core/events.ts';
import type { RankChange, Role } from '../../core/model.ts';
import { isReached } from '../../core/role-plan.ts';
import { heldIds } from '../../core/role-scheme.ts';
import type { Step } from '../../core/steps.ts';
import type { CallContext } from '../../ports/index.ts';
import { carryOut, fenceOf, type Progress } from './carry-out.ts';
import {
  type ChangeResult,
  outcomeUnknown,
  recordCompensating,
  recordOutcome,
  resultOf,
  withOutcome,
} from './change-record.ts';
import type { ApprovedChange } from './plan-change.ts';
import { type Ranking, withSlack } from './ranking.ts';
import { lagEndsAt } from './read-member.ts';

/** `error` explains why the change was not applied. */
export interface FinishedChange {
  change: RankChange;
  error?: RankdError | undefined;
}

export interface Intent {
  /** The record to store before the first write. */
  change: RankChange;
  approved: ApprovedChange;
  /** The message for the caller if the change is applied. */
  success: string;
  /** The id of the member's newest change when the member was read. */
  after: string | undefined;
  secretId?: string | undefined;
}

/**
 * Stores the intent, carries out the change, and stores the outcome. Call it during the member's turn. Returns `stale`
 * if the store has an open or a newer change to the member, or if the group's roles have changed since the change was
 * planned. Throws, without storing a change, if the change is not allowed to begin, if it can't begin in time, or if
 * the platform is not trusted. Once the change has begun, throws only `outcome_unknown`.
 */
export async function carryOutChange(
  app: Ranking,
  intent: Intent,
  call: CallContext,
): Promise<FinishedChange | 'stale'> {
  const { change, approved, after, secretId } = intent;
  if (app.trust.stop !== undefined) throw app.trust.stop;
  const { scheme, plan } = approved;
  const kinds = plan.steps.map(({ kind }) => kind);
  if (kinds.length === 0) return recordReached(app, intent);
  const inTime = withSlack(app, call);
  // a change begins only if the budget has room for all its writes
  using reservation = await app.platform.reserve(kinds, inTime);
  const startBy = inTime.deadlineAt - kinds.length * app.platform.writeMs;
  // the reservation may have waited for seconds, and the roles may have changed in the meantime
  if (!(await app.group.isCurrent(scheme, plan.target, { ...call, deadlineAt: startBy }))) return 'stale';
  if (app.clock.monotonic() > startBy) throw startsTooLate();
  const limits = breakerLimits(app);
  app.ownedChangeIds.add(change.id);
  try {
    const verdict = await app.store.beginChange(change, { secretId, windows: limits }, (facts) =>
      judgeBegin({ change, after, limits, ...approved }, facts),
    );
    if (verdict.do === 'refuse') throw verdict.error;
    if (verdict.do === 'stale') return 'stale';
    return await finish(app, intent, { ...call, reservation });
  } finally {
    app.ownedChangeIds.delete(change.id);
  }
}

function breakerLimits({ breaker, clock }: Pick<Ranking, 'breaker' | 'clock'>): MemberLimit[] {
  if (breaker === undefined) return [];
  const { demotions, highRank, highChanges, windowMs } = breaker;
  const since = clock.now() - windowMs;
  const limit = (of: MemberLimit['of'], max: number) => ({ of, since, byKey: max, byAll: allKeysShare * max });
  return [
    limit('demotions', demotions),
    limit(highRank === undefined ? 'privileged' : { fromRank: highRank }, highChanges),
  ];
}

/** The circuit breaker's limit for all keys combined, as a multiple of the limit for one key. */
const allKeysShare = 3;

/**
 * Records a change that needs no writes, because the member already holds the resulting roles. Returns `stale` if the
 * member was changed in the meantime.
 */
async function recordReached(
  app: Pick<Ranking, 'store' | 'clock' | 'breaker'>,
  { change, approved, success, after, secretId }: Intent,
): Promise<FinishedChange | 'stale'> {
  const reached = withOutcome(change, { state: 'applied', code: null, message: success }, app.clock.now());
  // the breaker's limits apply to a new suspension or temporary rank even if it changes no role
  const limits = change.hold?.does === 'begin' ? breakerLimits(app) : [];
  const verdict = await app.store.beginChange(reached, { secretId, windows: limits }, (facts) =>
    judgeBegin({ change: reached, after, limits, ...approved }, facts),
  );
  if (verdict.do === 'refuse') throw verdict.error;
  return verdict.do === 'stale' ? 'stale' : { change: reached };
}

/**
 * Makes the writes and stores the outcome. After an internal error, the change stays open until it is reconciled by
 * reads.
 */
async function finish(app: Ranking, { change, approved, success }: Intent, call: CallContext): Promise<FinishedChange> {
  try {
    const { outcome, error, isInDoubt } = await applyChange(app, { change, approved, success }, call);
    app.recentWrites.note(change.rankeeId);
    const rolesAfter = outcome.rolesAfter ?? (outcome.state === 'unknown' ? undefined : change.rolesBefore);
    const stored = await recordOutcome(app, change.id, { ...outcome, rolesAfter });
    if (stored === undefined) return await afterTakeOver(app, change, outcome);
    if (stored.state === 'applied') app.trust.noteApplied(stored, readsReflectWritesAt(app));
    else if (isInDoubt) app.trust.addRead(change, readsReflectWritesAt(app));
    return { change: withOutcome(change, outcome, app.clock.now()), error };
  } catch (cause) {
    // if this read fails, assume that the store has the change
    const stored = await findOrRecordAgain(app, change).catch(() => undefined);
    if (stored?.state !== 'applied') throw outcomeUnknown(cause);
    app.trust.noteApplied(stored, readsReflectWritesAt(app));
    return { change: stored };
  }
}

type ApplyContext = Pick<Ranking, 'store' | 'platform' | 'clock' | 'recentWrites' | 'trust'>;

type Refused = Extract<Progress, { kind: 'refused' }>;

/** Carries out a change whose intent has been stored. Reverts it if a step after the first is refused. */
async function applyChange(
  app: ApplyContext,
  { change, approved: { plan, scheme }, success }: { change: RankChange; approved: ApprovedChange; success: string },
  call: CallContext,
): Promise<ChangeResult> {
  const { rankeeId: userId } = change;
  const fenced = { ...call, fence: fenceOf(app, change) };
  const { roles } = scheme;
  const run = {
    userId,
    roles,
    before: plan.goal.from,
    steps: plan.steps,
    readsReliableFrom: () => lagEndsAt(app, userId),
  };
  const progress = await carryOut(app, run, fenced);
  switch (progress.kind) {
    case 'done': {
      const seen = { userId, roleIds: progress.seen };
      // A moderator may have given the member a higher role during the change.
      if (!isReached(scheme, change, seen)) return resultOf(outcomeUnknown());
      const rolesAfter = heldIds(scheme.roles, seen);
      return { outcome: { state: 'applied', code: null, message: success, rolesAfter } };
    }
    case 'unknown':
      return resultOf(progress.error);
    case 'refused':
      return compensate(app, { change, roles, ...progress }, fenced);
  }
}

/**
 * Reverts the steps that took effect before a refusal. Once reads show that all of them have been reverted, the refusal
 * becomes the outcome. If the refused step was a removal, first gives that role back, because the read that still
 * showed it may have been stale.
 */
async function compensate(
  app: ApplyContext,
  { change, roles, done, step, seen, error, isInDoubt = false }: Refused & { change: RankChange; roles: Role[] },
  call: CallContext,
): Promise<ChangeResult> {
  if (done.length === 0) return { ...resultOf(error), isInDoubt };
  await recordCompensating(app, change.id, error);
  // A set, because `done` contains a lost role's step twice.
  const undone = new Set([...done, ...(step.kind === 'unassign' ? [step] : [])]);
  const steps = [...undone].map(inverse).reverse();
  // until reads can no longer lag, a stale read from before the change could pass for a completed revert
  const lagEnd = app.clock.monotonic() + app.platform.readLagMs;
  const run = { userId: change.rankeeId, roles, before: seen, steps, readsReliableFrom: async () => lagEnd };
  const progress = await carryOut(app, run, call);
  return resultOf(progress.kind === 'done' ? error : outcomeUnknown(progress.error));
}

function inverse({ kind, roleId }: Step): Step {
  return { kind: kind === 'assign' ? 'unassign' : 'assign', roleId };
}

/** Returns the time (on `Clock.monotonic()`) after which reads reflect all writes made so far. */
function readsReflectWritesAt({ clock, platform }: Pick<Ranking, 'clock' | 'platform'>): number {
  return clock.monotonic() + platform.readLagMs;
}

/**
 * Reads a change's record after an attempt to store its outcome failed: the attempt may have succeeded nonetheless, or
 * another node may have ended the change. If a failover lost the record, stores it again as unknown so that it is
 * reconciled.
 */
async function findOrRecordAgain(
  { store, clock }: Pick<Ranking, 'store' | 'clock'>,
  change: RankChange,
): Promise<RankChange> {
  const stored = await store.findChange(change.id);
  if (stored !== undefined) return stored;
  const message =
    'The database lost the original record of this change. rankd keeps checking; the history will show the outcome.';
  const open: RankChange = { ...change, state: 'unknown', code: 'outcome_unknown', message };
  await store.recordChange(open, [changeEvent(open, 'unknown', clock.now())]);
  return open;
}

/**
 * Returns the record of a change that another node took over while this node was stalled. If the other node recorded
 * the change as not applied, but this node saw it take effect, records a correction for undo and the circuit breaker.
 */
async function afterTakeOver(
  { store, clock }: Pick<Ranking, 'store' | 'clock'>,
  change: RankChange,
  outcome: ChangeOutcome,
): Promise<FinishedChange> {
  const stored = await store.findChange(change.id);
  if (stored === undefined) throw outcomeUnknown();
  if (outcome.state !== 'applied' || stored.state === 'applied' || stored.finishedAt === undefined)
    return { change: stored };
  const { idempotencyKey: _, fingerprint: _fingerprint, ...again } = change;
  const message = `${outcome.message} It took effect after change ${change.id} had been recorded as not applied.`;
  const now = clock.now();
  const correction = withOutcome({ ...again, id: newChangeId(now) }, { ...outcome, message }, now);
  await store.recordChange(correction, [changeEvent(correction, 'applied', now)]);
  return { change: correction };
}

/**
 * Converts an error from before the first write. An expired deadline becomes `platform_busy`, because nothing was sent.
 * Rethrows internal errors.
 */
export function toRankdError(cause: unknown, call: CallContext): RankdError {
  if (cause instanceof RankdError) return cause;
  if (call.signal.aborted) return startsTooLate(cause);
  throw cause;
}

function startsTooLate(cause?: unknown): RankdError {
  const message = 'The change could not start in time; nothing was changed. Try again.';
  return new RankdError('platform_busy', message, { cause, retryAfterMs: 5_000 });
}

/** Records a change that ended without any write to the platform. */
export async function recordEnded(
  { store, clock }: Pick<Ranking, 'store' | 'clock'>,
  change: RankChange,
  { outcome, error }: ChangeResult,
): Promise<FinishedChange> {
  const now = clock.now();
  const { idempotencyKey, ...rest } = withOutcome(change, outcome, now);
  const stored = { ...rest, ...(idempotencyKey !== undefined && isReplayed(outcome.code) && { idempotencyKey }) };
  await store.recordChange(stored, [changeEvent(stored, stored.state, now)]);
  return { change: stored, error };
}
