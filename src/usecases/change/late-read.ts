import { asRankdError } from '../../base/errors.ts';
import { reopened } from '../../core/change-state.ts';
import { hasLeftSince } from '../../core/holds.ts';
import type { RankChange } from '../../core/model.ts';
import { heldIds } from '../../core/role-scheme.ts';
import { holdsOthers, steps, stepsLeft } from '../../core/steps.ts';
import { callWithin } from '../../ports/platform.ts';
import { isOfApplied, type LateRead } from './platform-trust.ts';
import type { Ranking } from './ranking.ts';

/** The wait before a failed read is retried, or one without room in the budget, in milliseconds. */
const waitMs = 1_000;
/** The same if the platform can't be reached, which fails fast and often lasts a while. */
const unreachedWaitMs = 5_000;
const maxTries = 5;

/** Makes the late reads of this process as they fall due, one after another, until `stop` is aborted. */
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
 * For a process that ends with its work: makes late reads that fall due during it, hands the rest over, and waits for
 * those that no daemon takes. Once `stop` is aborted, it waits for nothing.
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

/** Verifies a change that another process reported as applied. */
export async function requestLateRead(app: Ranking, changeId: string): Promise<{ isTaken: boolean }> {
  const change = await app.store.findChange(changeId);
  if (change?.state !== 'applied') return { isTaken: false };
  app.trust.addRead(change, app.clock.monotonic() + app.platform.readLagMs);
  return { isTaken: true };
}

/** False if a late read has shown that a change was wrongly reported as applied, or as not applied. */
export async function isReportStillTrue(
  { store }: Pick<Ranking, 'store'>,
  changeId: string | undefined,
  { isApplied }: { isApplied: boolean },
): Promise<boolean> {
  const state = changeId === undefined ? undefined : (await store.findChange(changeId))?.state;
  return state === undefined || (state !== 'unknown' && (state === 'applied') === isApplied);
}

/** Waits for the first due late read, and makes it. Rejects if `stop` is aborted. */
async function makeLateRead(current: () => Ranking, stop: AbortSignal): Promise<void> {
  const { trust, clock } = current();
  const read = await trust.nextRead(stop);
  const leftMs = read.dueAt - clock.monotonic();
  if (leftMs > 0) return clock.sleep(leftMs, stop);
  if (!hasRoom(current())) return clock.sleep(waitMs, stop);
  read.tries += 1;
  const isThrough = await readAgain(current(), read, stop).catch(asRankdError);
  if (isThrough === true || read.tries >= maxTries) return trust.endRead(read);
  const isUnreached = isThrough !== false && isThrough.connection !== undefined;
  read.dueAt = clock.monotonic() + (isUnreached ? unreachedWaitMs : waitMs) * read.tries;
}

/**
 * Callers come first: a tenth of the budget for reading members is reserved for them, and late reads start only if no
 * call waits.
 */
function hasRoom({ platform }: Pick<Ranking, 'platform'>): boolean {
  const reads = platform.pace().find(({ operation }) => operation === 'memberships');
  return reads === undefined || (reads.waiting === 0 && reads.left > reads.limit / 10);
}

/**
 * Compares the platform with the reported outcome. If they differ, the change becomes unknown and is reconciled. A
 * refused change whose step did take effect is completed. A member who has changed since, through rankd or by hand, or
 * who has left, proves nothing, even after an immediate return. Returns false if it is too early: another change of the
 * member is running.
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

/** `agrees`: the held roles (ids) match the report. */
type Finding = 'agrees' | 'differs' | 'no evidence';

function findingOfApplied({ rolesBefore: from, rolesAfter: to }: RankChange, held: number[]): Finding {
  const left = stepsLeft({ from, to }, held);
  if (left?.length === 0) return 'agrees';
  return left === undefined && holdsOthers({ from, to }, held) ? 'no evidence' : 'differs';
}

/** A refused change that was not carried out does not show whether success responses can be trusted. */
function findingOfRefused({ rolesBefore: from, rolesAfter: to }: RankChange, held: number[]): Finding {
  const left = stepsLeft({ from, to }, held);
  return left === undefined || left.length === steps({ from, to }).length ? 'no evidence' : 'differs';
}
