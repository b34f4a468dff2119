import { RankdError } from '../../base/errors.ts';
import type { RankChange } from '../../core/model.ts';
import type { CallContext } from '../../ports/index.ts';
import { recoverLateWrite } from './late-write.ts';
import type { Ranking } from './ranking.ts';

/**
 * A fence that stops the writes of a change once another node has taken it over. A process that was suspended during a
 * write notices right after it.
 */
export function fenceOf(
  app: Pick<Ranking, 'store' | 'clock' | 'trust'>,
  change: RankChange,
): NonNullable<CallContext['fence']> {
  return async () => {
    const leftMs = app.store.leaseLeft();
    if (await app.store.holds(change.id)) return { leftMs, noteLate: () => void recoverLateWrite(app, change, leftMs) };
    throw new RankdError('conflict', `Change ${change.id} was taken over by another process of rankd.`);
  };
}
