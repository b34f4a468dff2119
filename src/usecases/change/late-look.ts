import { reopened } from '../../core/change-state.ts';
import { stepsLeft } from '../../core/steps.ts';
import { callWithin } from '../../ports/call-context.ts';
import type { LateLook } from './platform-trust.ts';
import type { Ranking } from './ranking.ts';
import { heldIds } from './read-member.ts';

/** How long to wait before a look that failed, or that there was no room for, in milliseconds. */
const waitMs = 1_000;
const maxTries = 5;

/** Waits for the change that is to be read once more first, and reads it. Rejects if `stop` is aborted. */
export async function takeLateLook(current: () => Ranking, stop: AbortSignal): Promise<void> {
  const { trust, clock } = current();
  const look = await trust.nextLook(stop);
  const leftMs = look.dueAt - clock.monotonic();
  if (leftMs > 0) return clock.sleep(leftMs, stop);
  if (!hasRoom(current())) return clock.sleep(waitMs, stop);
  look.tries += 1;
  const isThrough = await lookAgain(current(), look, stop).catch(() => false);
  if (isThrough || look.tries >= maxTries) return trust.endLook(look);
  look.dueAt = clock.monotonic() + waitMs * look.tries;
}

/** Callers come first: a tenth of the budget for reading members is left to them, and nobody waits for it. */
function hasRoom({ platform }: Ranking): boolean {
  const reads = platform.pace().find(({ operation }) => operation === 'memberships');
  return reads === undefined || (reads.waiting === 0 && reads.left > reads.limit / 10);
}

/**
 * Compares what the platform holds with what was said. If it does not hold that, the change is unknown again, and is reconciled as
 * any other. A member who was changed since, or who has left, tells nothing. False if it is too early to say: another change of the
 * member is under way, and would have to wait for that.
 */
async function lookAgain(app: Ranking, { change }: LateLook, stop: AbortSignal): Promise<boolean> {
  using patient = callWithin(app.clock, app.deadlineMs, 'late look');
  const call = { ...patient, signal: AbortSignal.any([patient.signal, stop]) };
  const { latestId } = await app.store.latestChange(change.rankeeId);
  if (latestId !== change.id || change.group !== app.group.title) return true;
  const member = await app.platform.getMember(change.rankeeId, call);
  if (member === undefined) return true;
  const held = await heldIds(app, member, call);
  const goal = { from: change.rolesBefore, to: change.rolesAfter };
  if (stepsLeft(goal, held)?.length === 0) {
    app.trust.noteAgreement();
    return true;
  }
  if (app.turns.isTaken(change.rankeeId)) return false;
  const open = await app.store.reopenChange(change.id, (kept) => reopened(kept, app.clock.now()));
  if (open !== undefined) app.trust.noteDisagreement(change, held);
  return true;
}
