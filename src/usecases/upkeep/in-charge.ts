import type { Ports } from '../../ports/index.ts';

/** Tasks that one daemon does for all that share a store. */
export type SharedTask = 'pruning' | 'webhooks' | 'alarms';

/** True if this daemon does the task: another one takes it over once this one has ended. */
export async function isInCharge({ store }: Pick<Ports, 'store'>, task: SharedTask): Promise<boolean> {
  return store.nodes === undefined || store.nodes.hasTask(task);
}
