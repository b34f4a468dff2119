import { asRankdError } from '../../base/errors.ts';
import { reopened } from '../../core/change-state.ts';
import { hasLeftSince } from '../../core/holds.ts';
import type { RankChange } from '../../core/model.ts';
import { heldIds } from '../../core/role-scheme.ts';
import { holdsOthers, steps, stepsLeft } from '../../core/steps.ts';
import { callWithin } from '../../ports/platform.ts';
import { isOfApplied, type LateLook } from './platform-trust.ts';
import type { Ranking } from './ranking.ts';

/** How long to wait before a look that failed, or that there was no room for, in milliseconds. */
const waitMs = 1_000;
/** The same where the platform can't be reached, which often takes a while to pass and fails at once. */
const unreachedWaitMs = 5_000;
const maxTries = 5;

/** Takes the looks of this process as they fall due, one after the other, until `stop` is aborted. */
export async function takeLateLooks(
  current: () => Ranking,
  { stop, report }: { stop: AbortSignal; report: (error: unknown) => void },
): Promise<void> {
  while (!stop.aborted) {
    await takeLateLook(current, stop).catch((error) => {
      if (!stop.aborted) report(error);
    });
  }
}

/**
 * For a process that ends with its work: takes the looks that fall due beside it, hands over what is left of them, and waits for those
 * that nobody takes. Once `stop` is aborted, nothing is waited for.
 */
export async function withLateLooks<T>(
  app: Ranking,
  { stop, handOver }: { stop: AbortSignal; handOver: (change: RankChange) => Promise<boolean> },
  work: () => Promise<T>,
): Promise<T> {
  const ended = new AbortController();
  const ignore = () => undefined;
  const beside = takeLateLooks(() => app, { stop: ended.signal, report: ignore });
  try {
    return await work();
  } finally {
    ended.abort();
    await beside;
    for (const look of app.trust.looks) {
      if (!(await handOver(look.change))) break;
      app.trust.endLook(look);
    }
    while (app.trust.looks.length > 0 && !stop.aborted) await takeLateLook(() => app, stop).catch(ignore);
  }
}

/** Another process has told this change as applied: it is read once more here. */
export async function lookAtChange(app: Ranking, changeId: string): Promise<{ isTaken: boolean }> {
  const change = await app.store.findChange(changeId);
  if (change?.state !== 'applied') return { isTaken: false };
  app.trust.addLook(change, app.clock.monotonic() + app.platform.readLagMs);
  return { isTaken: true };
}

/** False if it was found since, by reading once more, that a change was told wrongly as applied, or as not applied. */
export async function isStillTold(
  { store }: Pick<Ranking, 'store'>,
  changeId: string | undefined,
  { isApplied }: { isApplied: boolean },
): Promise<boolean> {
  const state = changeId === undefined ? undefined : (await store.findChange(changeId))?.state;
  return state === undefined || (state !== 'unknown' && (state === 'applied') === isApplied);
}

/** Waits for the change that is to be read once more first, and reads it. Rejects if `stop` is aborted. */
async function takeLateLook(current: () => Ranking, stop: AbortSignal): Promise<void> {
  const { trust, clock } = current();
  const look = await trust.nextLook(stop);
  const leftMs = look.dueAt - clock.monotonic();
  if (leftMs > 0) return clock.sleep(leftMs, stop);
  if (!hasRoom(current())) return clock.sleep(waitMs, stop);
  look.tries += 1;
  const isThrough = await lookAgain(current(), look, stop).catch(asRankdError);
  if (isThrough === true || look.tries >= maxTries) return trust.endLook(look);
  const isUnreached = isThrough !== false && isThrough.connection !== undefined;
  look.dueAt = clock.monotonic() + (isUnreached ? unreachedWaitMs : waitMs) * look.tries;
}

/** Callers come first: a tenth of the budget for reading members is left to them, and nobody waits for it. */
function hasRoom({ platform }: Ranking): boolean {
  const reads = platform.pace().find(({ operation }) => operation === 'memberships');
  return reads === undefined || (reads.waiting === 0 && reads.left > reads.limit / 10);
}

/**
 * Compares what the platform holds with what was said. If that is not so, the change is unknown again, and is reconciled as any
 * other: a refused one of which a step took effect is carried on, as if that had been seen at once. A member who was changed since,
 * by rankd or by hand, or who has left, tells nothing, even if the member came back at once. False if it is too early to say: another change
 * of the member is under way, and would have to wait for that.
 */
async function lookAgain(app: Ranking, look: LateLook, stop: AbortSignal): Promise<boolean> {
  const { change } = look;
  using timed = callWithin(app.clock, app.deadlineMs, 'late look');
  const call = { ...timed, signal: AbortSignal.any([timed.signal, stop]) };
  const { latestId } = await app.store.latestChange(change.rankeeId);
  if (latestId !== change.id || change.group !== app.group.title) return true;
  const member = await app.platform.getMember(change.rankeeId, call);
  if (member === undefined) return true;
  const held = heldIds((await app.group.scheme(call)).roles, member);
  const found = isOfApplied(look) ? findingOfApplied(change, held) : findingOfRefused(change, held);
  if (found === 'agrees') app.trust.noteAgreement(look);
  if (found !== 'differs' || hasLeftSince(change, member)) return true;
  if (app.turns.isTaken(change.rankeeId)) return false;
  const open = await app.store.reopenChange(change.id, (kept) => reopened(kept, change, app.clock.now()));
  if (open !== undefined) app.trust.noteDisagreement(look, held);
  return true;
}

/** `agrees`: what is held (role ids) is what was said. */
type Finding = 'agrees' | 'differs' | 'tells nothing';

function findingOfApplied({ rolesBefore: from, rolesAfter: to }: RankChange, held: number[]): Finding {
  const left = stepsLeft({ from, to }, held);
  if (left?.length === 0) return 'agrees';
  return left === undefined && holdsOthers({ from, to }, held) ? 'tells nothing' : 'differs';
}

/** A refused change that was not carried out does not show if success responses can be trusted. */
function findingOfRefused({ rolesBefore: from, rolesAfter: to }: RankChange, held: number[]): Finding {
  const left = stepsLeft({ from, to }, held);
  return left === undefined || left.length === steps({ from, to }).length ? 'tells nothing' : 'differs';
}
