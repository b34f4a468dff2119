import type { RankdError } from '../../base/errors.ts';
import { isRankdError } from '../../base/errors.ts';
import type { Hold } from '../../core/model.ts';
import type { Ranking } from '../change/ranking.ts';
import { checkHold, postponeHold } from './end-hold.ts';

/** The number of concurrent ends. */
const sideBySide = 8;
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
  await Promise.all(Array.from({ length: sideBySide }, work));
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
export function spareChanges({ platform }: Pick<Ranking, 'platform'>): number {
  const budgets = platform.pace().filter(({ operation }) => operations.includes(operation));
  const spare = budgets.map(({ left, waiting, limit }) => Math.floor(left - waiting - limit / 2));
  return Math.max(0, Math.min(perRound, ...spare));
}
