import { isRankdError, RankdError } from '../../base/errors.ts';
import { refusalOfUntouchable } from '../../core/acting-account.ts';
import { memberTitle, restoredMessage } from '../../core/describe.ts';
import { type HoldUpdate, type HoldVerdict, isResting, judgeHold, postponed } from '../../core/holds.ts';
import type { Hold, HoldPart, RankRequest } from '../../core/model.ts';
import { policyFor } from '../../core/policy-names.ts';
import { restorePlan } from '../../core/role-plan.ts';
import { nameForRequest } from '../../core/role-scheme.ts';
import { refusalOfMisfit } from '../../core/role-settings.ts';
import type { CallContext } from '../../ports/index.ts';
import { callWithin } from '../../ports/platform.ts';
import {
  carryOutChange,
  type FinishedChange,
  type Intent,
  recordEnded,
  toRankdError,
} from '../change/change-member.ts';
import { recordRefusal } from '../change/change-rank.ts';
import { draftOf, withPlan } from '../change/change-record.ts';
import { type ApprovedChange, checkPlan, checkUndo, guessed, withCurrentReach } from '../change/plan-change.ts';
import { QueuePosition } from '../change/queue-position.ts';
import {
  backgroundDeadlineMs,
  type ChangeCaller,
  callForConfirming,
  callForReading,
  type Idempotency,
  type Ranking,
} from '../change/ranking.ts';
import { readMember } from '../change/read-member.ts';

export interface HoldCheck {
  hold: Hold;
  caller: ChangeCaller;
  /**
   * `ended` if the hold has reached its end date, `lifted` if it is ended early; `undefined` if it continues and is
   * only compared with the member's roles.
   */
  as: 'ended' | 'lifted' | undefined;
  /** If true, restores the previous roles regardless of the roles that the member holds now. */
  force?: boolean;
  reason?: string | undefined;
  /** The requester that a game or a Discord command names; absent for other callers. */
  asked?: HoldRequester | undefined;
  idempotency?: Idempotency | undefined;
}

export type HoldRequester = Pick<RankRequest, 'rankerId' | 'rankerName' | 'command'>;

/** A hold after it was checked. `finished` is the change that the check made, if any. */
export interface CheckedHold {
  hold: Hold;
  finished?: FinishedChange;
}

/**
 * Waits for the member's turn and reads the member, then restores the previous roles, gives the hold's roles to a
 * member who rejoined, or closes the hold. If the platform or a rule prevents that, the hold continues. In that case,
 * records and returns the refusal if a key requested the change and it was already planned; otherwise, throws
 * RankdError. After `outcome_unknown`, the change stays open.
 */
export async function checkHold(app: Ranking, check: HoldCheck, within?: CallContext): Promise<CheckedHold> {
  using own = callWithin(app.clock, backgroundDeadlineMs(app), 'holds');
  const call = within ?? own;
  try {
    return await checkInTurn(app, check, call);
  } catch (cause) {
    throw toRankdError(cause, call);
  }
}

/**
 * Returns the message of the change that `checkHold` would make, or the resulting hold if there is nothing to change.
 * Throws the refusal. Changes and records nothing.
 */
export async function dryRunHold(
  app: Ranking,
  check: HoldCheck,
  call: CallContext,
): Promise<{ message: string } | { hold: Hold }> {
  const intent = await intentFor(app, { ...check, caller: { ...check.caller, dryRun: true } }, call);
  if ('hold' in intent) return intent;
  await intent.approve();
  return { message: intent.success };
}

export async function postponeHold(
  { store, clock }: Pick<Ranking, 'store' | 'clock'>,
  hold: Hold,
  error: Pick<Error, 'message'> & { code: NonNullable<Hold['code']> },
): Promise<void> {
  await store.updateHold(hold.id, (stored) => postponed(stored, error, { by: 'daemon', at: clock.now() }));
}

async function checkInTurn(app: Ranking, check: HoldCheck, call: CallContext): Promise<CheckedHold> {
  const { rankeeId, id } = check.hold;
  await using position = new QueuePosition(app, { rankeeId, lane: call.lane });
  for (;;) {
    const after = await position.waitForTurn(call);
    const hold = (await app.store.findHold(id)) ?? check.hold; // a change ahead of this one may have ended it
    if (!canBeChecked(hold, check, app.clock.now())) return { hold };
    const intent = await withCurrentReach(app, call, () => intentFor(app, { ...check, hold }, call));
    if ('hold' in intent) return intent;
    const finished = await finish(app, { ...intent, after }, call);
    if (finished !== 'stale') return { hold: (await app.store.findHold(id)) ?? hold, finished };
  }
}

/** Approves and carries out the change. If a key requested it, records a refusal instead of throwing it. */
async function finish(
  app: Ranking,
  intent: HoldIntent & Pick<Intent, 'after'>,
  call: CallContext,
): Promise<FinishedChange | 'stale'> {
  const { change, approve } = intent;
  try {
    const approved = await approve();
    return change.dryRun ? await recordDryRun(app, intent) : await carryOutChange(app, { ...intent, approved }, call);
  } catch (cause) {
    const error = toRankdError(cause, call);
    // the caller replans with the roles that were just re-read
    if (isRankdError(error, 'above_acting_account') && (await app.group.renew(call))) return 'stale';
    if (change.keyId === undefined) throw error;
    return recordRefusal(app, change, error);
  }
}

function recordDryRun(app: Ranking, { change, success }: HoldIntent): Promise<FinishedChange> {
  return recordEnded(app, change, { outcome: { state: 'applied', code: null, message: success } });
}

/**
 * False if the hold was extended while the check was queued, or if it has ended or is ending. With `force`, a
 * superseded or forfeited hold can still be checked.
 */
function canBeChecked(hold: Hold, { as, force = false }: HoldCheck, now: number): boolean {
  const { state, endsAt } = hold;
  if (as === 'ended' && (endsAt === undefined || endsAt > now)) return false;
  return isResting(hold) || (force && (state === 'superseded' || state === 'forfeited'));
}

/** A planned change. `approve` checks it against the rules, and throws the refusal. */
interface HoldIntent extends Omit<Intent, 'after' | 'approved'> {
  approve: () => Promise<ApprovedChange>;
}

/** Returns the change to make, or the updated hold if there is nothing to change. */
async function intentFor(app: Ranking, check: HoldCheck, call: CallContext): Promise<HoldIntent | CheckedHold> {
  const { hold, caller, as, force = false, reason, asked, idempotency } = check;
  const actor = { by: caller.by, at: app.clock.now() };
  const inTime = callForConfirming(app, call);
  const known = await app.group.scheme(call);
  const expected = guessed(() => restorePlan(known, { userId: hold.rankeeId, roleIds: [] }, hold.rolesBefore));
  const [member] = await Promise.all([
    readMember(app, hold.rankeeId, callForReading(app, call)),
    app.group.confirm(as === undefined ? undefined : expected, inTime),
  ]);
  const scheme = member === undefined ? await app.group.scheme(call) : await app.group.schemeFor(member, call);
  const givenAt = (await app.store.lastWritten(hold.rankeeId))?.requestedAt;
  const seen = { member, roles: scheme.roles, isOver: as !== undefined, givenAt, force };
  const judge = (now: Hold) => judgeHold(now, seen, actor);
  const verdict = judge(hold);
  const isByKey = caller.keyId !== undefined;
  if (verdict.do === 'keep' && isByKey) refuseForfeit(hold, verdict.update);
  if (member === undefined || (verdict.do === 'keep' && !isByKey)) return updateUnlessDry(app, { hold, caller }, judge);
  const acting = await app.group.acting(call);
  const untouchable = refusalOfUntouchable(hold.rankeeId, acting);
  if (untouchable !== undefined) throw untouchable;
  const { id, rankeeId, rankeeName } = hold;
  const part: HoldPart = verdict.do === 'renew' ? { does: 'renew', id } : { does: 'return', id, as: as ?? 'ended' };
  const plan = restorePlan(scheme, member, verdict.do === 'keep' ? hold.rolesBefore : verdict.roles);
  if (!(await app.group.confirm(plan.target, inTime))) return intentFor(app, check, call);
  const newRankId = nameForRequest(scheme, plan.target);
  const own = { rankerId: 0, rankerName: caller.by === 'daemon' ? 'rankd' : 'operator', command: commandOf(check) };
  const request = {
    rankeeId,
    rankeeName,
    ...(asked ?? own),
    newRankId,
    ...(reason !== undefined && { reason }),
  };
  const draft = { ...draftOf(app, { caller, request, ...(idempotency !== undefined && { idempotency }) }), hold: part };
  const planned = { request: draft, plan, scheme, newRankId, acting };
  const approve = async () => {
    if (!isByKey) return checkUndo(app, planned);
    const misfit = refusalOfMisfit(scheme, 'everything');
    if (misfit !== undefined) throw misfit;
    return checkPlan(app, { ...planned, caller, kind: 'return' }, call);
  };
  if (verdict.do === 'keep') {
    await approve(); // a key can end a hold only if it is allowed to restore the member's previous roles
    return updateUnlessDry(app, { hold, caller }, judge);
  }
  const missing =
    verdict.do === 'give_back' && verdict.missing.length > 0
      ? ` rankd could not give back ${verdict.missing.length === 1 ? 'role' : 'roles'} ${verdict.missing.join(', ')}, which the group no longer lists.`
      : '';
  const success =
    verdict.do === 'renew'
      ? `${memberTitle(hold)} rejoined the group and is suspended again.`
      : `${restoredMessage(draft, { scheme, plan, between: [] })}${missing}`;
  const policyCase = { policy: policyFor(scheme, app.policy) };
  return { change: withPlan(draft, { plan, scheme, policyCase }), approve, success, secretId: caller.secretId };
}

/**
 * Throws if a key would end the hold of a member who has left, or who rejoined without roles, because no rule would be
 * checked.
 */
function refuseForfeit(hold: Hold, { holds }: HoldUpdate): void {
  if (!holds.some(({ state }) => state === 'forfeited')) return;
  const what = hold.kind === 'suspension' ? 'the suspension' : 'the temporary rank or role';
  const until = hold.endsAt === undefined ? 'until the operator ends it' : 'until its end';
  throw new RankdError('member_not_found', `${memberTitle(hold)} has left the group, so ${what} continues ${until}.`);
}

function commandOf({ as, hold }: HoldCheck): string {
  if (as === 'lifted') return 'rankd rank unsuspend';
  return hold.kind === 'suspension' ? 'the end of a suspension' : 'the end of a temporary rank or role';
}

/**
 * Updates the stored hold. Re-evaluates it first, because a command may have extended it while the member was being
 * read.
 */
async function updateUnlessDry(
  app: Ranking,
  { hold, caller }: Pick<HoldCheck, 'hold' | 'caller'>,
  judge: (hold: Hold) => HoldVerdict,
): Promise<CheckedHold> {
  const updateOf = (now: Hold): HoldUpdate => {
    const verdict = judge(now);
    return verdict.do === 'keep' ? verdict.update : { holds: [], events: [] };
  };
  const [updated = hold] = updateOf(hold).holds;
  if (caller.dryRun || updated === hold) return { hold: updated };
  return { hold: (await app.store.updateHold(hold.id, updateOf)) ?? hold };
}
