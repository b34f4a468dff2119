import { deadlineIn } from '../clock.ts';
import type { RankChange } from '../core/model.ts';
import type { Ranking } from './ranking.ts';
import { isAbandoned, settleChange } from './settle-change.ts';

export interface RecoveryRound {
  /** Told of a change that could not be settled yet. */
  report: (change: RankChange, error: unknown) => void;
  stop: AbortSignal;
  /** The ids of changes that an earlier round is still at: rounds may overlap. */
  underWay: Set<string>;
}

/** One round: settles every abandoned change it can, members side by side. */
export async function recoverChanges(app: Ranking, { report, stop, underWay }: RecoveryRound): Promise<void> {
  const open = await app.store.openChanges();
  const abandoned = open.filter((change) => isAbandoned(app, change) && !underWay.has(change.id));
  await Promise.all(
    abandoned.map(async (change) => {
      underWay.add(change.id);
      await recover(app, change, stop).catch((error) => report(change, error));
      underWay.delete(change.id);
    }),
  );
}

async function recover(app: Ranking, { id, rankeeId }: RankChange, stop: AbortSignal): Promise<void> {
  // Nobody waits for the answer, and reads need their time to catch up however short the deadline of requests is.
  using deadline = deadlineIn(app.clock, app.deadlineMs + app.platform.readLagMs);
  const call = { signal: AbortSignal.any([deadline.signal, stop]), deadlineAt: deadline.at, lane: 'recovery' };
  await app.turns.run(rankeeId, call.signal, async () => {
    const change = await app.store.findChange(id);
    const isStillOpen = change?.state === 'pending' || change?.state === 'unknown';
    if (isStillOpen && isAbandoned(app, change)) await settleChange(app, change, call);
  });
}
