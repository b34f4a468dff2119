import { RankdError } from '../../base/errors.ts';
import { memberTitle } from '../../core/describe.ts';
import type { RankChange } from '../../core/model.ts';
import { isReached } from '../../core/role-plan.ts';
import { type Goal, reversed, steps, stepsLeft } from '../../core/steps.ts';
import type { CallContext, ChangeOutcome } from '../../ports/index.ts';
import { carryOut } from './carry-out.ts';
import { isPassing, outcomeOf } from './change-outcome.ts';
import { backgroundDeadlineMs, type Ranking } from './ranking.ts';
import { heldIds, lagEndsAt } from './read-member.ts';

/** What a process that is alive may need beyond its time to keep the outcome, in milliseconds. */
const graceMs = 5_000;

/** True where nobody works on this open change any more: its process has died, or could not confirm the outcome. */
export function isAbandoned(app: Ranking, change: RankChange): boolean {
  if (app.inHand.has(change.id)) return false;
  if (change.state === 'unknown') return true;
  if (app.isDaemon && change.keyId !== undefined) return true; // only the one daemon works on these
  const ageMs = app.clock.now() - change.requestedAt;
  return ageMs < -graceMs || ageMs > backgroundDeadlineMs(app) + graceMs; // below zero: the clock was set back
}

/**
 * Finds out how an abandoned change ended, by reading, and brings a half-done one to its end. Call it in the member's turn.
 * False where another process is at it. Throws RankdError where that is not possible yet.
 */
export async function reconcileChange(app: Ranking, { id, rankeeId }: RankChange, call: CallContext): Promise<boolean> {
  const line = { rankeeId: settlersOf(rankeeId), holder: app.holder };
  const lifeMs = Math.ceil(call.deadlineAt - app.clock.monotonic()) + graceMs;
  const ticket = await app.store.takeTicket({ ...line, lifeMs });
  try {
    const { isNext } = await app.store.lookAhead({ ...line, place: ticket });
    if (!isNext) return false;
    const { open } = await app.store.latestChange(rankeeId); // whoever was at it before may have settled it
    if (open?.id === id) {
      const outcome = await findOutcome(app, open, call);
      app.written.note(rankeeId);
      await app.store.finishChange(id, outcome);
    }
    return true;
  } finally {
    await app.store.giveBack(ticket).catch(() => undefined); // what can't be given back expires by itself
  }
}

/**
 * Those who settle a member's open change have a line of their own, under a number that no user has: two processes at it would
 * write for the same change, and the later of them over what came after it.
 */
function settlersOf(rankeeId: number): number {
  return -rankeeId;
}

async function findOutcome(app: Ranking, change: RankChange, call: CallContext): Promise<ChangeOutcome> {
  refuseOtherGroups(app, change);
  const forward: Goal = { from: change.rolesBefore, to: change.rolesAfter };
  const goal = change.aim === 'apply' ? forward : reversed(forward);
  const rolesAfter = await seenAtRest(app, { change, goal }, call);
  if (rolesAfter === undefined) return { ...outcomeOf(leftTheGroup(change)), rolesAfter: [] };
  const left = stepsLeft(goal, rolesAfter);
  if (left === undefined) return { ...outcomeOf(changedByOthers(change)), rolesAfter };
  if (left.length === 0) return reached(app, { change, rolesAfter }, call);
  if (change.aim === 'apply' && left.length === steps(goal).length)
    return { ...outcomeOf(notApplied(change)), rolesAfter };

  const progress = await carryOut(
    app,
    { userId: change.rankeeId, steps: left, readsReliableFrom: async () => 0 },
    call,
  );
  if (progress.kind === 'done') {
    const seen = { userId: change.rankeeId, roleIds: progress.seen };
    return reached(app, { change, rolesAfter: await heldIds(app, seen, call) }, call);
  }
  const { error, kind } = progress;
  if (kind === 'unknown' || isPassing(error.code)) throw error;
  if (change.aim === 'roll_back')
    return { ...outcomeOf(error), message: `Could not be put back: ${error.message}`, rolesAfter };
  const why = { code: error.code, message: error.message };
  await app.store.markRollBack(change.id, why);
  return findOutcome(app, { ...change, ...why, aim: 'roll_back' }, call);
}

/** The roles of one group tell nothing of another's, and ids are no proof: a base role's can be the same in all groups. */
function refuseOtherGroups(app: Ranking, { id, group }: RankChange): void {
  if (group === app.group.title) return;
  throw new RankdError(
    'platform_rejected',
    `Change ${id} was begun in ${group}, and ${app.group.title} is configured now; it can only be settled there.`,
    { hint: 'put the earlier group and its key back into the configuration until the change is settled' },
  );
}

/**
 * The roles held once the goal is reached, or once reads can no longer lag the last write; `undefined`: no member.
 * A read from before the change can show the goal of a roll-back, or one that an earlier change had left: it proves nothing.
 */
async function seenAtRest(
  app: Ranking,
  { change, goal }: { change: RankChange; goal: Goal },
  call: CallContext,
): Promise<number[] | undefined> {
  const restsAt = app.clock.monotonic() + app.platform.readLagMs;
  const readsReliableFrom = change.aim === 'roll_back' ? restsAt : await lagEndsAt(app, change.rankeeId);
  const untilProofMs = readsReliableFrom - app.clock.monotonic();
  if (untilProofMs > 0) await app.clock.sleep(Math.ceil(untilProofMs) + 1, call.signal);
  for (;;) {
    const readAt = app.clock.monotonic();
    const member = await app.platform.getMember(change.rankeeId, call);
    const held = member === undefined ? undefined : await heldIds(app, member, call);
    const isThere = held !== undefined && stepsLeft(goal, held)?.length === 0;
    if (isThere || readAt >= restsAt) return held;
    // Reads are scarce, and open changes can be many: the next look is the one that proves.
    await app.clock.sleep(Math.max(1, Math.ceil(restsAt - app.clock.monotonic())), call.signal);
  }
}

async function reached(
  app: Ranking,
  { change, rolesAfter }: { change: RankChange; rolesAfter: number[] },
  call: CallContext,
): Promise<ChangeOutcome> {
  if (change.aim === 'roll_back') {
    return { ...outcomeOf(new RankdError(change.code ?? 'platform_rejected', change.message)), rolesAfter };
  }
  const scheme = await app.group.scheme(call);
  // Every role of the plan is in place; but somebody else may have given a higher one since.
  if (!isReached(scheme, change, { userId: change.rankeeId, roleIds: rolesAfter }))
    return { ...outcomeOf(changedByOthers(change)), rolesAfter };
  return {
    state: 'applied',
    code: null,
    message: `${memberTitle(change)} holds the new rank; confirmed after the fact.`,
    rolesAfter,
  };
}

function notApplied(change: RankChange): RankdError {
  return new RankdError(
    'platform_unavailable',
    `The platform did not carry out the change of ${memberTitle(change)}; send it again.`,
  );
}

function leftTheGroup(change: RankChange): RankdError {
  return new RankdError('member_not_found', `${memberTitle(change)} is no longer in the group.`);
}

function changedByOthers(change: RankChange): RankdError {
  return new RankdError(
    'platform_rejected',
    `The roles of ${memberTitle(change)} were changed by somebody else in the meantime.`,
  );
}
