import type { NodeStatus, SeenNode } from '../core/nodes.ts';

/** A daemon as it takes part among others. */
export interface ShownNode {
  name: string;
  /** Is asked with each beat. */
  status(): NodeStatus;
  /** Carries out what an operator asked of this node; resolves with what came of it, as JSON can hold it. */
  carryOut(command: NodeCommand): Promise<unknown>;
  /** Is told when another daemon is gone, or when this one had to join anew: what it declared may count otherwise now. */
  onNodesChanged(): void;
  /** Is told if the store has lost audit events that were confirmed, as after a failover: the numbers of the first and of the last. */
  onLost?(range: { fromId: number; toId: number }): void;
}

/** What an operator asks of a daemon from any machine. `by`: whom the audit names. */
export interface NodeCommand {
  does: 'reload';
  by: string;
  /** True if every entry that names roles is to be read again. */
  relearns: boolean;
}

/** The daemons that work on one store, and what they tell one another. A store that one daemon alone can work on has none of it. */
export interface NodeStore {
  /** Shows this handle as a daemon to all others, from now on until it is closed. Throws `store_unavailable`. */
  showNode(node: ShownNode): Promise<void>;
  /** True if this handle knew of no other daemon as it looked last, a second ago or less. */
  readonly isAlone: boolean;
  /** All daemons by name, with those that ended without a word within the last day and were not started again. */
  listNodes(): Promise<SeenNode[]>;
  /** True if this node has a task that one node alone has, until that one ends; each that asks takes one that nobody has. */
  hasTask(task: string): Promise<boolean>;
  /** Asks a node to carry out a command, which it does within seconds if it is alive. Resolves with an id for `outcomeOf`. */
  askNode(nodeId: string, command: NodeCommand): Promise<string>;
  /** What came of what a node was asked; `undefined` as long as nothing has. */
  outcomeOf(commandId: string): Promise<{ outcome: unknown } | undefined>;
}
