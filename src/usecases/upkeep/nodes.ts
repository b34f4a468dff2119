import { RankdError } from '../../base/errors.ts';
import type { SeenNode } from '../../core/nodes.ts';
import type { Clock, NodeCommand, NodeStore, Ports } from '../../ports/index.ts';

/** Tasks that one daemon performs for all daemons that share a store. */
export type SharedTask = 'pruning' | 'webhooks' | 'alarms';

/** Returns true if this daemon is in charge of the task; takes charge of it if no live daemon is. */
export async function isInCharge({ store }: Pick<Ports, 'store'>, task: SharedTask): Promise<boolean> {
  return store.nodes === undefined || store.nodes.hasTask(task);
}

const askEveryMs = 100;

/** A node's response to a command. `outcome` is absent if the node ended or did not respond in time. */
export interface NodeAnswer {
  name: string;
  outcome?: unknown;
}

/**
 * Sends a command to all daemons that share a store, or only to those with the given name, and waits for the outcomes.
 * Throws `daemon_unavailable` if no daemon is running, and `not_found` if none has the name.
 */
export async function askNodes(
  { nodes, clock }: { nodes: NodeStore; clock: Clock },
  { command, name, timeoutMs }: { command: NodeCommand; name?: string | undefined; timeoutMs: number },
): Promise<NodeAnswer[]> {
  const asked = chosen(await nodes.listNodes(), name);
  const giveUpAt = clock.monotonic() + timeoutMs;
  return Promise.all(
    asked.map(async ({ id, name }) => {
      const commandId = await nodes.askNode(id, command);
      while (clock.monotonic() < giveUpAt) {
        const isAlive = (await nodes.listNodes()).some((node) => node.id === id && node.state !== 'ended');
        const answer = await nodes.outcomeOf(commandId);
        if (answer !== undefined) return { name, ...answer };
        if (!isAlive) break;
        await clock.sleep(askEveryMs);
      }
      return { name };
    }),
  );
}

function chosen(nodes: readonly SeenNode[], name: string | undefined): SeenNode[] {
  const alive = nodes.filter(({ state }) => state !== 'ended');
  if (alive.length === 0) throw noDaemon();
  const named = alive.filter((node) => name === undefined || node.name === name);
  if (named.length > 0) return named;
  throw new RankdError('not_found', `No daemon on this database is named ${name}.`, {
    hint: `daemons on this database: ${alive.map((node) => node.name).join(', ')}`,
  });
}

export function noDaemon(): RankdError {
  return new RankdError('daemon_unavailable', 'No rankd daemon is using this database.', { hint: 'rankd serve' });
}
