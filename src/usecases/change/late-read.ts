import { asRankdError } from '../../base/errors.ts';
import { reopened } from '../../core/change-state.ts';
import { hasLeftSince } from '../../core/holds.ts';
import type { RankChange } from '../../core/model.ts';
import { heldIds } from '../../core/role-scheme.ts';
import { holdsOthers, steps, stepsLeft } from '../../core/steps.ts';
import { callWithin } from '../../ports/platform.ts';
import { isOfApplied, type LateRead } from './platform-trust.ts';
import type { Ranking } from './ranking.ts';

/** The wait while the budget has no room. After an inconclusive read, it is multiplied by the number of tries. */
const waitMs = 1_000;
/**
 * The wait, multiplied by the number of tries, after a read that could not reach the platform: such reads fail fast,
 * and outages often last longer.
 */
const unreachedWaitMs = 5_000;
const maxTries = 5;

/** Makes this process's late reads as they become due, one at a time, until `stop` is aborted. */
export async function makeLateReads(
  current: () => Ranking,
  { stop, report }: { stop: AbortSignal; report: (error: unknown) => void },
): Promise<void> {
  while (!stop.aborted) {
    await makeLateRead(current, stop).catch((error) => {
      if (!stop.aborted) report(error);
    });
  }
}

/**
 * Runs `work` in a process that exits afterwards. Makes the late reads that become due in the meantime, and hands the
 * remaining ones over to a daemon. If no daemon takes them, makes them before returning, unless `stop` is aborted.
 */
export async function withLateReads<T>(
  app: Ranking,
  { stop, handOver }: { stop: AbortSignal; handOver: (change: RankChange) => Promise<boolean> },
  work: () => Promise<T>,
): Promise<T> {
  const ended = new AbortController();
  const ignore = () => undefined;
  const reading = makeLateReads(() => app, { stop: ended.signal, report: ignore });
  try {
    return await work();
  } finally {
    ended.abort();
    await reading;
    for (const read of app.trust.reads) {
      if (!(await handOver(read.change))) break;
      app.trust.endRead(read);
    }
    while (app.trust.reads.length > 0 && !stop.aborted) await makeLateRead(() => app, stop).catch(ignore);
  }
}

/** Schedules a late read of a change that another process reported as applied. */
export async function requestLateRead(app: Ranking, changeId: string): Promise<{ isTaken: boolean }> {
  const change = await app.store.findChange(changeId);
  if (change?.state !== 'applied') return { isTaken: false };
  app.trust.addRead(change, app.clock.monotonic() + app.platform.readLagMs);
  return { isTaken: true };
}

/**
 * Returns false if a late read has contradicted the reported outcome. `isApplied` is true if the change was reported as
 * applied.
 */
export async function isReportStillTrue(
  { store }: Pick<Ranking, 'store'>,
  changeId: string | undefined,
  { isApplied }: { isApplied: boolean },
): Promise<boolean> {
  const state = changeId === undefined ? undefined : (await store.findChange(changeId))?.state;
  return state === undefined || (state !== 'unknown' && (state === 'applied') === isApplied);
}

/**
 * Makes the next late read, or only waits if that read is not due yet or the budget has no room. Rejects if `stop` is
 * aborted.
 */
async function makeLateRead(current: () => Ranking, stop: AbortSignal): Promise<void> {
  const { trust, clock } = current();
  const read = await trust.nextRead(stop);
  const leftMs = read.dueAt - clock.monotonic();
  if (leftMs > 0) return clock.sleep(leftMs, stop);
  if (!hasRoom(current())) return clock.sleep(waitMs, stop);
  read.tries += 1;
  const isDone = await readAgain(current(), read, stop).catch(asRankdError);
  if (isDone === true || read.tries >= maxTries) return trust.endRead(read);
  const isUnreached = isDone !== false && isDone.connection !== undefined;
  read.dueAt = clock.monotonic() + (isUnreached ? unreachedWaitMs : waitMs) * read.tries;
}

function hasRoom({ platform }: Pick<Ranking, 'platform'>): boolean {
  const reads = platform.pace().find(({ operation }) => operation === 'memberships');
  return reads === undefined || (reads.waiting === 0 && reads.left > reads.limit / 10);
}

/**
 * Compares the member's roles with the reported outcome. If they contradict it, reopens the change as unknown so that
 * it is reconciled, which completes a refused change that partly took effect. Ignores the roles if the member was
 * changed in the meantime or has left the group (and perhaps rejoined), because they then prove nothing. Returns false
 * if another change to the member is running or waiting in this process.
 */
async function readAgain(app: Ranking, read: LateRead, stop: AbortSignal): Promise<boolean> {
  const { change } = read;
  using timed = callWithin(app.clock, app.deadlineMs, 'late read');
  const call = { ...timed, signal: AbortSignal.any([timed.signal, stop]) };
  const { latestId } = await app.store.latestChange(change.rankeeId);
  if (latestId !== change.id || change.group !== app.group.title) return true;
  const member = await app.platform.getMember(change.rankeeId, call);
  if (member === undefined) return true;
  const held = heldIds((await app.group.scheme(call)).roles, member);
  const found = isOfApplied(read) ? findingOfApplied(change, held) : findingOfRefused(change, held);
  if (found === 'agrees') app.trust.noteAgreement(read);
  if (found !== 'differs' || hasLeftSince(change, member)) return true;
  if (app.turns.isTaken(change.rankeeId)) return false;
  const open = await app.store.reopenChange(change.id, (stored) => reopened(stored, change, app.clock.now()));
  if (open !== undefined) app.trust.noteDisagreement(read, held);
  return true;
}

type Finding = 'agrees' | 'differs' | 'no evidence';

function findingOfApplied({ rolesBefore: from, rolesAfter: to }: RankChange, held: number[]): Finding {
  const left = stepsLeft({ from, to }, held);
  if (left?.length === 0) return 'agrees';
  return left === undefined && holdsOthers({ from, to }, held) ? 'no evidence' : 'differs';
}

/** Never returns `agrees`: a correct refusal does not show whether success responses can be trusted. */
function findingOfRefused({ rolesBefore: from, rolesAfter: to }: RankChange, held: number[]): Finding {
  const left = stepsLeft({ from, to }, held);
  return left === undefined || left.length === steps({ from, to }).length ? 'no evidence' : 'differs';
}
