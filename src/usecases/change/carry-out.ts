import { isRankdError, RankdError } from '../../base/errors.ts';
import { exponentialBackOff } from '../../base/time.ts';
import { reopenedLate } from '../../core/change-state.ts';
import { changeEvent } from '../../core/events.ts';
import type { Member, RankChange, Role } from '../../core/model.ts';
import { hasTakenEffect, type Step, sideEffects } from '../../core/steps.ts';
import type { CallContext } from '../../ports/index.ts';
import { unboundedLease } from '../../ports/platform.ts';
import { outcomeUnknown } from './change-record.ts';
import type { LateWriteOutcome } from './platform-trust.ts';
import type { Ranking } from './ranking.ts';

/**
 * `seen` contains the role ids that the platform last reported, and `done` the steps that took effect before the
 * refused one.
 */
export type Progress =
  | { kind: 'done'; seen: number[] }
  | ({ kind: 'refused'; done: Step[]; seen: number[]; step: Step } & StepRefusal)
  | { kind: 'unknown'; seen: number[]; error: RankdError };

type StepResult =
  | { kind: 'done'; seen: number[] }
  | ({ kind: 'refused' } & StepRefusal)
  | { kind: 'unknown'; error: RankdError };

interface StepRefusal {
  error: RankdError;
  /** True if the step may have taken effect after all, because the read may be stale. */
  isInDoubt?: boolean;
}

const readAfterMs = exponentialBackOff(150, 2_000);
/** The wait before a refused step is retried once. The first step is not retried. */
const secondTryMs = 500;

type StepPorts = Pick<Ranking, 'platform' | 'clock' | 'trust'>;

export interface StepRun {
  userId: number;
  roles: Role[];
  /** The role ids held before the first step. */
  before: number[];
  steps: Step[];
  /** True if an earlier step of the change has taken effect. */
  isUnderWay?: boolean;
  /** Returns the time (on `Clock.monotonic()`) after which every read reflects rankd's last write. */
  readsReliableFrom(): Promise<number>;
}

interface OneStep extends Pick<StepRun, 'userId' | 'readsReliableFrom'> {
  step: Step;
  isUnderWay: boolean;
}

/** Carries out the steps in order, confirming each before starting the next, and reports effects on other roles. */
export async function carryOut(ports: StepPorts, run: StepRun, call: CallContext): Promise<Progress> {
  const progress = await executeSteps(ports, run, call);
  const { userId, roles, steps, before } = run;
  const wasSeen = progress.seen !== before;
  if (wasSeen) ports.trust.noteSideEffects(userId, sideEffects(roles, steps, { before, after: progress.seen }));
  return progress;
}

async function executeSteps(
  ports: StepPorts,
  { steps, before, isUnderWay = false, ...run }: StepRun,
  call: CallContext,
): Promise<Progress> {
  const done: Step[] = [];
  let seen = before;
  const left = [...steps];
  for (let step = left.shift(); step !== undefined; step = left.shift()) {
    const result = await executeStep(ports, { ...run, step, isUnderWay: isUnderWay || done.length > 0 }, call);
    if (result.kind === 'refused') return { ...result, done, seen, step };
    if (result.kind === 'unknown') return { ...result, seen };
    seen = result.seen;
    const lost = lostRole(done, seen);
    done.push(step);
    if (lost === undefined) continue;
    // Until the role is given again, the member may hold fewer roles than both before and after the change.
    ports.trust.noteLost(run.userId, lost.roleId);
    left.unshift(lost);
  }
  return { kind: 'done', seen };
}

/** Returns the completed step whose role the member no longer holds, unless that role was already given twice. */
function lostRole(done: Step[], seen: number[]): Step | undefined {
  const lost = done.find((step) => step.kind === 'assign' && !hasTakenEffect(step, seen));
  return lost !== undefined && done.indexOf(lost) === done.lastIndexOf(lost) ? lost : undefined;
}

async function executeStep(ports: StepPorts, one: OneStep, call: CallContext): Promise<StepResult> {
  let written = await write(ports, one, call);
  // The previous step has just shown that the key can change this member, so the refusal may be temporary.
  if (written.kind === 'refused' && one.isUnderWay && (await resolves(ports.clock.sleep(secondTryMs, call.signal))))
    written = await write(ports, one, call);
  if (written.kind === 'refused') return afterRefusal(ports, one, written, call);
  return confirm(ports, one, written, call);
}

/** `answer` is `undefined` if the response does not include the member. */
type Written =
  | { kind: 'accepted'; answer: Member | undefined }
  | { kind: 'refused'; error: RankdError; wasSent: boolean }
  | { kind: 'unknown' };

async function write(
  { platform }: StepPorts,
  { userId, step, isUnderWay }: OneStep,
  call: CallContext,
): Promise<Written> {
  const change = { userId, roleId: step.roleId };
  let wasSent = false;
  const fence = async () => {
    const lease = (await call.fence?.()) ?? unboundedLease;
    wasSent = true;
    return lease;
  };
  const bounds = { ...call, fence, readsAfter: !isUnderWay }; // a later step can use all the time that is left
  try {
    const answer = await (step.kind === 'assign'
      ? platform.assignRole(change, bounds)
      : platform.unassignRole(change, bounds));
    return { kind: 'accepted', answer };
  } catch (cause) {
    const isRefusal = isRankdError(cause) && cause.code !== 'outcome_unknown';
    return isRefusal ? { kind: 'refused', error: cause, wasSent } : { kind: 'unknown' };
  }
}

/**
 * Confirms the step from the write's response if that shows the effect and responses are trusted; otherwise, reads the
 * member until the effect shows. Returns `refused` if the platform accepted the write but reads that can no longer lag
 * do not show its effect.
 */
async function confirm(
  { platform, clock, trust }: StepPorts,
  { userId, step, readsReliableFrom }: OneStep,
  written: Exclude<Written, { kind: 'refused' }>,
  call: CallContext,
): Promise<StepResult> {
  const answer = written.kind === 'accepted' ? written.answer : undefined;
  if (answer !== undefined && trust.believesAnswers && hasTakenEffect(step, answer.roleIds))
    return { kind: 'done', seen: answer.roleIds };
  const answeredAt = clock.monotonic();
  const conclusiveAt = await readsReliableFrom();
  for (let reads = 0; ; reads += 1) {
    const readAt = clock.monotonic();
    const seen = await platform.getMember(userId, call).catch(() => undefined); // a failed read proves nothing
    if (seen !== undefined && hasTakenEffect(step, seen.roleIds) && readAt >= conclusiveAt)
      return { kind: 'done', seen: seen.roleIds };
    const isPastLag = seen !== undefined && readAt - answeredAt >= platform.readLagMs;
    if (isPastLag && written.kind === 'accepted') return { kind: 'refused', error: withoutEffect(answer) };
    if (!(await resolves(clock.sleep(readAfterMs(reads), call.signal))))
      return { kind: 'unknown', error: outcomeUnknown(call.signal.reason) };
  }
}

/**
 * Checks a refusal by reading the member, because the platform may have carried out the write anyway, or may have
 * wrongly reported that the user is not a member. If the member can't be read, returns `unknown`, except for a first
 * step whose write and read both failed because of the credential: such a write never takes effect.
 */
async function afterRefusal(
  { platform, clock }: StepPorts,
  { userId, step, isUnderWay, readsReliableFrom }: OneStep,
  { error, wasSent }: Extract<Written, { kind: 'refused' }>,
  call: CallContext,
): Promise<StepResult> {
  if (error.code === 'conflict' || !(wasSent || isUnderWay)) return { kind: 'refused', error };
  const conclusiveAt = await readsReliableFrom();
  const readAt = clock.monotonic();
  let member: Member | undefined;
  try {
    member = await platform.getMember(userId, call);
  } catch (cause) {
    const isDead = [error, cause].every((one) => isRankdError(one, 'platform_credential'));
    return isDead && !isUnderWay ? { kind: 'refused', error } : { kind: 'unknown', error: outcomeUnknown(error) };
  }
  if (member === undefined) return { kind: 'refused', error };
  if (hasTakenEffect(step, member.roleIds) && readAt >= conclusiveAt) return { kind: 'done', seen: member.roleIds };
  return { kind: 'refused', error: disproved(error), isInDoubt: platform.readLagMs > 0 };
}

/** Replaces `member_not_found`, which the read has just disproved. */
function disproved(error: RankdError): RankdError {
  if (error.code !== 'member_not_found') return error;
  const message =
    'Roblox refused the change as if the user were not a member of the group, but shows the user as a member.';
  return new RankdError('platform_rejected', message, {
    cause: error,
    hint: 'check that the role still exists: `rankd group roles`',
  });
}

/**
 * Returns the error for a write that was accepted but had no effect. Roblox has been observed to return 200 and change
 * nothing if the key lacks `group:write`.
 */
function withoutEffect(answer: Member | undefined): RankdError {
  if (answer === undefined) {
    const message = 'Roblox accepted the change with an unreadable response but did not carry it out. Try again.';
    return new RankdError('platform_unavailable', message, { retryAfterMs: 5_000 });
  }
  return new RankdError(
    'platform_credential',
    'Roblox accepted the change but did not carry it out; the Roblox key probably lacks group:write.',
    {
      hint: 'give the Roblox key the scope group:write for this group; `rankd doctor` shows what Roblox reports about the key',
    },
  );
}

function resolves(sleep: Promise<void>): Promise<boolean> {
  return sleep.then(
    () => true,
    () => false,
  );
}

/**
 * Returns a fence that blocks a change's writes once another node has taken over the change. If this process was
 * suspended during a write, `noteLate` starts the recovery from that write.
 */
export function fenceOf(
  app: Pick<Ranking, 'store' | 'clock' | 'trust'>,
  change: RankChange,
): NonNullable<CallContext['fence']> {
  return async () => {
    const leftMs = app.store.leaseLeft();
    if (await app.store.holds(change.id)) return { leftMs, noteLate: () => void recoverLateWrite(app, change, leftMs) };
    throw new RankdError('conflict', `Another rankd process has taken over change ${change.id}.`);
  };
}

/**
 * Retries stop after this time. It is long enough for the new holder, or the next recovery round, to end the change.
 */
const tryForMs = 120_000;
const tryEveryMs = 1_000;
/** A live node renews its lease with one of its next heartbeats, well before the last check. */
const checkEveryMs = 100;
const maxChecks = 20;

type LateWriteContext = Pick<Ranking, 'store' | 'clock' | 'trust'>;

/**
 * Handles a write that may have reached the platform after another node had taken over its change: records it in the
 * audit log, and reopens the change so that it is reconciled. If the change can't be reopened, for example because the
 * member has a newer one, `rankd status` names the member so that an operator can check. `leftMs` returns the time left
 * on this node's lease. Never rejects.
 */
export async function recoverLateWrite(app: LateWriteContext, change: RankChange, leftMs: () => number): Promise<void> {
  for (let checks = 0; checks < maxChecks; checks += 1) {
    if (leftMs() > 0) return; // no node has declared this one dead, so none has taken over
    await app.clock.sleep(checkEveryMs);
  }
  const giveUpAt = app.clock.monotonic() + tryForMs;
  let isNoted = false;
  let outcome: LateWriteOutcome = 'unknown';
  for (;;) {
    try {
      if (!isNoted) await app.store.appendAudit(changeEvent(change, 'late_write', app.clock.now()));
      isNoted = true;
      outcome = await reopenIfLatest(app, change);
    } catch {
      // retried below
    }
    if (outcome !== 'unknown' || app.clock.monotonic() >= giveUpAt) break;
    await app.clock.sleep(tryEveryMs);
  }
  app.trust.reportLateWrite(change, outcome);
}

async function reopenIfLatest({ store, clock }: LateWriteContext, change: RankChange): Promise<LateWriteOutcome> {
  const { latestId, open } = await store.latestChange(change.rankeeId);
  if (latestId !== change.id) return 'superseded';
  if (open !== undefined) return 'unknown'; // its holder may have read the member before the write
  const reopened = await store.reopenChange(change.id, (stored) => reopenedLate(stored, change, clock.now()));
  return reopened === undefined ? 'unknown' : 'reopened';
}
