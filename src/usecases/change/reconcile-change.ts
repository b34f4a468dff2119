import { RankdError } from '../../base/errors.ts';
import { mayStillSucceed } from '../../core/change-codes.ts';
import type { ChangeOutcome } from '../../core/change-state.ts';
import { memberTitle } from '../../core/describe.ts';
import { hasLeftSince } from '../../core/holds.ts';
import type { Member, RankChange, RoleChangeKind } from '../../core/model.ts';
import { isReached } from '../../core/role-plan.ts';
import { heldIds } from '../../core/role-scheme.ts';
import { type Goal, reversed, steps, stepsIfTooFew, stepsLeft } from '../../core/steps.ts';
import type { CallContext, OpenChange } from '../../ports/index.ts';
import { callWithin } from '../../ports/platform.ts';
import { carryOut, fenceOf } from './carry-out.ts';
import { outcomeOf, recordCompensating, recordOutcome } from './change-record.ts';
import { backgroundDeadlineMs, type Ranking } from './ranking.ts';
import { lagEndsAt, type MemberReading } from './read-member.ts';

/** True if no node is working on this open change: its holder is gone, or was unable to confirm the outcome. */
export function isAbandoned(
  { ownedChangeIds }: Pick<Ranking, 'ownedChangeIds'>,
  { change, holder }: OpenChange,
): boolean {
  return !ownedChangeIds.has(change.id) && holder !== 'other';
}

/**
 * Determines the outcome of an abandoned change by reading the member, and completes or reverts the change if only part
 * of it took effect. Call it during the member's turn. Returns false if this process or another node is already working
 * on the change, or if the change has ended. Throws RankdError if the outcome can't be determined yet.
 */
export async function reconcileChange(app: Ranking, { id, rankeeId }: RankChange, call: CallContext): Promise<boolean> {
  if (app.ownedChangeIds.has(id)) return false;
  app.ownedChangeIds.add(id);
  try {
    const change = await app.store.takeOver(id);
    if (change === undefined) return false;
    const outcome = await findOutcome(app, change, { ...call, fence: fenceOf(app, change) });
    app.recentWrites.note(rankeeId);
    await recordOutcome(app, id, outcome);
    return true;
  } catch (error) {
    // If the release fails, this process still holds the change and will retry.
    await app.store.release(id).catch(() => undefined);
    throw error;
  } finally {
    app.ownedChangeIds.delete(id);
  }
}

/**
 * Reconciles an open change before the next change to the member begins. Throws `platform_unavailable` if that fails.
 */
export async function reconcileFirst(app: Ranking, open: RankChange, call: CallContext): Promise<boolean> {
  try {
    return await reconcileChange(app, open, call);
  } catch (cause) {
    const message = `The outcome of an earlier change to member ${open.rankeeId} is not known yet.`;
    const hint = cause instanceof RankdError ? cause.hint : undefined;
    throw new RankdError('platform_unavailable', message, { hint, cause, retryAfterMs: 5_000 });
  }
}

async function findOutcome(app: Ranking, change: RankChange, call: CallContext): Promise<ChangeOutcome> {
  refuseOtherGroups(app, change);
  const forward: Goal = { from: change.rolesBefore, to: change.rolesAfter };
  const goal = change.phase === 'forward' ? forward : reversed(forward);
  const seen = await readSettledMember(app, { change, goal }, call);
  const rolesAfter = seen && heldIds((await app.group.scheme(call)).roles, seen);
  if (seen === undefined || rolesAfter === undefined) return { ...outcomeOf(leftTheGroup(change)), rolesAfter: [] };
  const towardsGoal = stepsLeft(goal, rolesAfter);
  const left = towardsGoal ?? stepsIfTooFew(goal, rolesAfter);
  if (left?.length !== 0 && hasLeftSince(change, seen)) return { ...outcomeOf(rejoined(change)), rolesAfter };
  if (left === undefined) return { ...outcomeOf(changedByOthers(change)), rolesAfter };
  if (left.length === 0) return reached(app, { change, rolesAfter }, call);
  // The member has fewer roles than before the change, and fewer than after it. Someone may have removed the missing
  // role on purpose, so the member gets the lower of the previous and the new rank.
  if (towardsGoal === undefined && change.phase === 'forward' && !change.demotion)
    return compensate(app, change, lostRoles(change), call);
  const isUnderWay = left.length < steps(goal).length;
  if (change.phase === 'forward' && !isUnderWay) return { ...outcomeOf(notApplied(change)), rolesAfter };

  if (app.trust.stop !== undefined) throw app.trust.stop;
  const { roles } = await app.group.scheme(call);
  const run = {
    ...{ userId: change.rankeeId, roles, before: rolesAfter, steps: left, isUnderWay },
    readsReliableFrom: async () => 0,
  };
  const progress = await carryOut(app, run, call);
  if (progress.kind === 'done') {
    return reached(app, { change, rolesAfter: heldIds(roles, { roleIds: progress.seen }) }, call);
  }
  const { error, kind } = progress;
  if (kind === 'unknown' || mayStillSucceed(error.code)) throw error;
  if (change.phase === 'compensate')
    return { ...outcomeOf(error), message: `Could not be reverted: ${error.message}`, rolesAfter };
  return compensate(app, change, error, call);
}

async function compensate(
  app: Ranking,
  change: RankChange,
  { code, message }: RankdError,
  call: CallContext,
): Promise<ChangeOutcome> {
  await recordCompensating(app, change.id, { code, message });
  return findOutcome(app, { ...change, code, message, phase: 'compensate' }, call);
}

/**
 * Throws if the change was made in a different group: the member's roles here prove nothing about it, even if the role
 * ids match.
 */
function refuseOtherGroups({ group: { title } }: Pick<Ranking, 'group'>, { id, group }: RankChange): void {
  if (group === title) return;
  throw new RankdError(
    'platform_rejected',
    `Change ${id} began in ${group}, but rankd is now configured for ${title}. It can be reconciled only in ${group}.`,
    { hint: 'configure the earlier group and its key again until the change is reconciled' },
  );
}

/**
 * Reads the member until the goal is reached or reads can no longer lag. Returns `undefined` if the user is not a
 * member. Starts only once reads are reliable, because a stale read may show roles from before an earlier change that
 * happen to match the goal.
 */
async function readSettledMember(
  app: MemberReading,
  { change, goal }: { change: RankChange; goal: Goal },
  call: CallContext,
): Promise<Member | undefined> {
  const settledAt = app.clock.monotonic() + app.platform.readLagMs;
  const readsReliableFrom = change.phase === 'compensate' ? settledAt : await lagEndsAt(app, change.rankeeId);
  const untilProofMs = readsReliableFrom - app.clock.monotonic();
  if (untilProofMs > 0) await app.clock.sleep(Math.ceil(untilProofMs) + 1, call.signal);
  for (;;) {
    const readAt = app.clock.monotonic();
    const member = await app.platform.getMember(change.rankeeId, call);
    const held = member === undefined ? undefined : heldIds((await app.group.scheme(call)).roles, member);
    const isAtGoal = held !== undefined && stepsLeft(goal, held)?.length === 0;
    if (isAtGoal || readAt >= settledAt) return member;
    // The read budget is limited and many changes can be open, so the next read waits until it is conclusive.
    await app.clock.sleep(Math.max(1, Math.ceil(settledAt - app.clock.monotonic())), call.signal);
  }
}

async function reached(
  { group }: Pick<Ranking, 'group'>,
  { change, rolesAfter }: { change: RankChange; rolesAfter: number[] },
  call: CallContext,
): Promise<ChangeOutcome> {
  if (change.phase === 'compensate') {
    return { ...outcomeOf(new RankdError(change.code ?? 'platform_rejected', change.message)), rolesAfter };
  }
  const scheme = await group.scheme(call);
  // The planned roles are in place, but someone else may have added a higher one.
  if (!isReached(scheme, change, { userId: change.rankeeId, roleIds: rolesAfter }))
    return { ...outcomeOf(changedByOthers(change)), rolesAfter };
  return {
    state: 'applied',
    code: null,
    message: `${memberTitle(change)} ${goalWords[change.kind ?? 'rank'].reached}; confirmed after the fact.`,
    rolesAfter,
  };
}

const goalWords = {
  rank: { reached: 'holds the new rank', missed: 'does not hold the new rank' },
  role_added: { reached: 'holds the role', missed: 'does not hold the role' },
  role_removed: { reached: 'no longer holds the role', missed: 'still holds the role' },
} as const satisfies Record<RoleChangeKind | 'rank', unknown>;

function notApplied(change: RankChange): RankdError {
  return new RankdError(
    'platform_unavailable',
    `${memberTitle(change)} ${goalWords[change.kind ?? 'rank'].missed}: Roblox did not carry out the change, or someone has undone it. Send it again if you still want it.`,
  );
}

function lostRoles(change: RankChange): RankdError {
  return new RankdError(
    'platform_unavailable',
    `${memberTitle(change)} was left with neither the old rank nor the new one: Roblox lost a role, or someone has removed it. Send it again if you still want it.`,
  );
}

function leftTheGroup(change: RankChange): RankdError {
  return new RankdError('member_not_found', `${memberTitle(change)} is no longer in the group.`);
}

function rejoined(change: RankChange): RankdError {
  return new RankdError(
    'member_not_found',
    `${memberTitle(change)} left the group after the change was requested, and rejoined. Send it again if you still want it.`,
  );
}

function changedByOthers(change: RankChange): RankdError {
  return new RankdError(
    'platform_rejected',
    `${memberTitle(change)} holds neither the earlier nor the requested roles: someone changed them outside rankd, or Roblox did not do what it reported.`,
  );
}

interface RecoveryRound {
  /** Called once per change, if the first attempt to reconcile it fails. */
  report: (change: RankChange, error: unknown) => void;
  stop: AbortSignal;
  /** Shared by all rounds, because rounds may overlap. */
  tries: RecoveryTries;
}

export interface RecoveryTries {
  underWay: Set<string>;
  /** The time (on `Clock.monotonic()`) at which the last attempt began or failed, keyed by change id. */
  last: Map<string, number>;
}

/** Reconciling a change takes one read of the member, or two if the first one may be stale. */
const readsPerChange = 2;
/** This many attempts can run at once even if the platform's budget is used up. */
const minConcurrent = 5;
/**
 * After failing to reconcile a change, this node leaves it for two recovery rounds to other nodes, which may be able to
 * reach the platform.
 */
const leaveToOthersMs = 5_000;

/**
 * Runs one recovery round: reconciles as many abandoned changes as the budget allows, least recently attempted first.
 */
export async function recoverChanges(app: Ranking, { report, stop, tries }: RecoveryRound): Promise<void> {
  const { underWay, last } = tries;
  const open = await app.store.openChanges();
  forgetFinished(last, open);
  const abandoned = open
    .filter((one) => isAbandoned(app, one) && !underWay.has(one.change.id) && !isLeftToOthers(app, one, last))
    .map(({ change }) => change)
    .sort((a, b) => (last.get(a.id) ?? 0) - (last.get(b.id) ?? 0))
    .slice(0, roomFor(app, underWay.size));
  await Promise.all(
    abandoned.map(async (change) => {
      const isFirst = !last.has(change.id);
      underWay.add(change.id);
      last.set(change.id, app.clock.monotonic());
      await recover(app, change, stop).catch((error) => {
        last.set(change.id, app.clock.monotonic());
        if (isFirst) report(change, error);
      });
      underWay.delete(change.id);
    }),
  );
}

export async function hasOrphanedChange({ store }: Pick<Ranking, 'store'>): Promise<boolean> {
  const open = await store.openChanges();
  return open.some(({ change, holder }) => change.state === 'pending' && holder === 'none');
}

function isLeftToOthers(
  { store, clock, recentWrites }: Pick<Ranking, 'store' | 'clock' | 'recentWrites'>,
  { change: { id, rankeeId }, holder }: OpenChange,
  last: RecoveryTries['last'],
): boolean {
  if (holder === 'this' || store.nodes === undefined || store.nodes.isAlone) return false;
  const failedAt = Math.max(...[last.get(id), recentWrites.of(rankeeId)].map((at) => at ?? Number.NEGATIVE_INFINITY));
  return clock.monotonic() - failedAt < leaveToOthersMs;
}

function forgetFinished(last: RecoveryTries['last'], open: OpenChange[]): void {
  const ids = new Set(open.map(({ change }) => change.id));
  for (const id of last.keys()) if (!ids.has(id)) last.delete(id);
}

/**
 * Returns the number of additional attempts that can start now, leaving half of the budget for reading members to
 * callers.
 */
function roomFor({ platform }: Pick<Ranking, 'platform'>, underWay: number): number {
  const reads = platform.pace().find(({ operation }) => operation === 'memberships');
  if (reads === undefined) return Number.POSITIVE_INFINITY;
  const spare = reads.left - reads.waiting - reads.limit / 2 - underWay; // each running attempt still needs a read
  return Math.max(minConcurrent - underWay, Math.floor(spare / readsPerChange), 0);
}

async function recover(app: Ranking, change: RankChange, stop: AbortSignal): Promise<void> {
  using own = callWithin(app.clock, backgroundDeadlineMs(app), 'recovery');
  const call = { ...own, signal: AbortSignal.any([own.signal, stop]) };
  using turn = app.turns.enqueue(change.rankeeId, call.lane);
  await turn.waitForTurn(call.signal);
  await reconcileChange(app, change, call);
}
