import { RankdError } from '../../base/errors.ts';
import type { CallContext, Ports } from '../../ports/index.ts';

/** A fence that stops the writes of a change once another node has taken it over. */
export function fenceOf({ store }: Pick<Ports, 'store'>, changeId: string): NonNullable<CallContext['fence']> {
  return async () => {
    if (await store.holds(changeId)) return;
    throw new RankdError('conflict', `Change ${changeId} was taken over by another process of rankd.`);
  };
}
