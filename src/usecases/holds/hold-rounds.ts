import { isRankdError, type RankdError } from '../../base/errors.ts';
import { canStillPass } from '../../core/change-codes.ts';
import { restingStates } from '../../core/holds.ts';
import type { Hold, Role } from '../../core/model.ts';
import { callWithin, readPages } from '../../ports/platform.ts';
import { backgroundDeadlineMs, type Ranking } from '../change/ranking.ts';
import { checkHold, postponeHold } from './end-hold.ts';

/** The number of concurrent ends. */
const concurrency = 8;
const perRound = 100;
/** A return is a read and, usually, one write of each kind. */
const operations = ['memberships', 'assign', 'unassign'];

export interface HoldRound {
  /** If true, retries do not wait, because the obstacle may be gone. */
  retryNow: boolean;
  stop: AbortSignal;
  report: (hold: Hold, error: RankdError) => void;
}

/**
 * Ends the holds that are due, oldest first, using at most half of the platform's budget, so that callers have the
 * other half.
 */
export async function endDueHolds(app: Ranking, { retryNow, stop, report }: HoldRound): Promise<void> {
  const limit = Math.min(perRound, spareChanges(app));
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

/** The number of changes that may be made now: half of each budget is reserved for callers. */
function spareChanges({ platform }: Pick<Ranking, 'platform'>): number {
  const budgets = platform.pace().filter(({ operation }) => operations.includes(operation));
  const spare = budgets.map(({ left, waiting, limit }) => Math.floor(left - waiting - limit / 2));
  return Math.max(0, Math.min(perRound, ...spare));
}

export const sweepEveryMs = 600_000;
/** The number of members that are read individually in a sweep. */
const readsASweep = 20;
const maxHolds = 10_000;

/**
 * Detects early that suspended members have left the group, come back, or been changed: lists all holders of the roles
 * that suspensions gave, and individually reads members who should be among them and are not. A suspension without a
 * role has nothing to list.
 */
export async function sweepHolds(app: Ranking, stop: AbortSignal): Promise<void> {
  const missing = await suspendedWithout(app);
  for (const hold of pickForSweep(missing, app.clock.now())) {
    if (stop.aborted) return;
    try {
      await checkHold(app, { hold, caller: { by: 'daemon', dryRun: false }, as: undefined });
    } catch (error) {
      if (!isRankdError(error) || canStillPass(error.code)) throw error;
    }
  }
}

/** The suspensions in force whose members should hold the given role, and do not. */
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

/** The role (id) that the suspension gave; `undefined` if it gave none, or if the group's list lacks it. */
function roleGivenBy({ rolesDuring }: Hold, roles: readonly Role[]): number | undefined {
  return roles.find(({ id, kind }) => kind === 'custom' && rolesDuring.includes(id))?.id;
}

/** The next ones in each sweep, until all have had their turn: members who left the group stay missing. */
export function pickForSweep<T>(holds: readonly T[], now: number): T[] {
  const first = (Math.floor(now / sweepEveryMs) * readsASweep) % Math.max(1, holds.length);
  return [...holds.slice(first), ...holds.slice(0, first)].slice(0, readsASweep);
}
