import { openStates } from '../../core/holds.ts';
import type { Hold } from '../../core/model.ts';
import type { Ranking } from '../change/ranking.ts';

export async function openHold(
  { store, group }: Pick<Ranking, 'store' | 'group'>,
  rankeeId: number,
): Promise<Hold | undefined> {
  const [open] = await store.listHolds({ group: group.title, rankeeId, states: openStates, limit: 1 });
  return open;
}

/** Returns at most 20 stuck holds, which is enough for an operator to act on. */
export function stuckHolds({ store, group }: Pick<Ranking, 'store' | 'group'>): Promise<Hold[]> {
  return store.listHolds({ group: group.title, states: ['stuck'], limit: 20 });
}
