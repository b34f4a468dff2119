import { isRankdError, type RankdError } from '../../base/errors.ts';
import { mayStillSucceed } from '../../core/change-codes.ts';
import { restingStates } from '../../core/holds.ts';
import type { Hold, Role } from '../../core/model.ts';
import { callWithin, readPages } from '../../ports/platform.ts';
import { backgroundDeadlineMs, type Ranking } from '../change/ranking.ts';
import { checkHold, postponeHold } from './end-hold.ts';

const concurrency = 8;
const maxPerRound = 100;
/** Ending a hold usually calls each of these operations once. */
const operations = ['memberships', 'assign', 'unassign'];

export interface HoldRound {
  /** If true, retries postponed holds immediately, for example after a reload. */
  retryNow: boolean;
  stop: AbortSignal;
  report: (hold: Hold, error: RankdError) => void;
}

/**
 * Ends the holds that are due, earliest end first. Uses at most half of the platform's budget and leaves the rest to
 * callers.
 */
export async function endDueHolds(app: Ranking, { retryNow, stop, report }: HoldRound): Promise<void> {
  const limit = Math.min(maxPerRound, spareChanges(app));
  if (limit === 0) return;
  const due = await app.store.dueHolds({ group: app.group.title, now: app.clock.now(), retryNow, limit });
  const queue = due.values();
  const work = async () => {
    for (const hold of queue) {
      if (stop.aborted || spareChanges(app) === 0) return;
      await endHold(app, hold, report);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
}

async function endHold(app: Ranking, hold: Hold, report: HoldRound['report']): Promise<void> {
  const caller = { by: 'daemon', dryRun: false };
  try {
    await checkHold(app, { hold, caller, as: 'ended' });
  } catch (error) {
    if (!isRankdError(error)) throw error;
    report(hold, error);
    if (error.code !== 'outcome_unknown') await postponeHold(app, hold, error);
  }
}

/** Returns the number of changes that can be made now, leaving half of each budget to callers. */
function spareChanges({ platform }: Pick<Ranking, 'platform'>): number {
  const budgets = platform.pace().filter(({ operation }) => operations.includes(operation));
  const spare = budgets.map(({ left, waiting, limit }) => Math.floor(left - waiting - limit / 2));
  return Math.max(0, Math.min(maxPerRound, ...spare));
}

export const sweepEveryMs = 600_000;
const readsPerSweep = 20;
const maxHolds = 10_000;

/**
 * Checks the holds of suspended members who may have left the group, rejoined or been changed. Lists the holders of
 * each role that a suspension gave, and reads up to `readsPerSweep` of the suspended members who are missing from the
 * lists. Skips suspensions that gave no custom role.
 */
export async function sweepHolds(app: Ranking, stop: AbortSignal): Promise<void> {
  const missing = await suspendedWithout(app);
  for (const hold of pickForSweep(missing, app.clock.now())) {
    if (stop.aborted) return;
    try {
      await checkHold(app, { hold, caller: { by: 'daemon', dryRun: false }, as: undefined });
    } catch (error) {
      if (!isRankdError(error) || mayStillSucceed(error.code)) throw error;
    }
  }
}

/** Returns the suspensions in force whose members do not hold the role that the suspension gave. */
async function suspendedWithout(app: Ranking): Promise<Hold[]> {
  const now = app.clock.now();
  const open = await app.store.listHolds({ group: app.group.title, states: restingStates, limit: maxHolds });
  const inForce = open.filter(({ kind, endsAt }) => kind === 'suspension' && (endsAt === undefined || endsAt > now));
  if (inForce.length === 0) return [];
  using call = callWithin(app.clock, backgroundDeadlineMs(app), 'holds');
  const { roles } = await app.group.scheme(call);
  const missing: Hold[] = [];
  for (const [id, holds] of Map.groupBy(inForce, (hold) => roleGivenBy(hold, roles))) {
    if (id === undefined) continue;
    const holders = new Set<number>();
    for await (const { items } of readPages((after) => app.platform.membersWith({ roleId: id, after }, call)))
      for (const userId of items) holders.add(userId);
    missing.push(...holds.filter(({ rankeeId }) => !holders.has(rankeeId)));
  }
  return missing;
}

function roleGivenBy({ rolesDuring }: Hold, roles: readonly Role[]): number | undefined {
  return roles.find(({ id, kind }) => kind === 'custom' && rolesDuring.includes(id))?.id;
}

/** Picks a different part of the list for each sweep, because members who have left the group stay on the list. */
export function pickForSweep<T>(holds: readonly T[], now: number): T[] {
  const first = (Math.floor(now / sweepEveryMs) * readsPerSweep) % Math.max(1, holds.length);
  return [...holds.slice(first), ...holds.slice(0, first)].slice(0, readsPerSweep);
}
