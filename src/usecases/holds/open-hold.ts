import { openStates } from '../../core/holds.ts';
import type { Hold } from '../../core/model.ts';
import type { Ranking } from '../change/ranking.ts';

/** The member's hold that has not ended; `undefined` if there is none. */
export async function openHold(
  { store, group }: Pick<Ranking, 'store' | 'group'>,
  rankeeId: number,
): Promise<Hold | undefined> {
  const [open] = await store.listHolds({ group: group.title, rankeeId, states: openStates, limit: 1 });
  return open;
}

/** The stuck holds; a few are enough for the operator. */
export function stuckHolds({ store, group }: Pick<Ranking, 'store' | 'group'>): Promise<Hold[]> {
  return store.listHolds({ group: group.title, states: ['stuck'], limit: 20 });
}
