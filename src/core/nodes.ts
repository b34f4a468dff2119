/** The status that a daemon publishes to all daemons that share its store. */
export interface NodeStatus {
  version: string;
  /** e.g. `http://10.0.0.5:7265` */
  url: string;
  group: string;
  /** The address of the daemon's dashboard, if the daemon always serves it. */
  page?: string | null;
  isDraining: boolean;
  uptimeSeconds: number;
  requestsInFlight: number;
  /** The number of platform calls that are waiting for budget. */
  callsWaiting: number;
  /** The platform's budget for each operation; empty if the platform has no rate limits. */
  budget: Array<{ operation: string; limit: number; left: number; waiting: number }>;
  /** The reason why the platform refuses the credential; null if it accepts it. */
  credentialProblem: string | null;
  /** The database server's clock minus the clock of the daemon's machine. */
  serverAheadMs: number;
  /**
   * A fingerprint of each setting that all nodes should share, keyed by setting. Equal fingerprints mean equal values.
   */
  settings: Record<string, string>;
}

/**
 * `no lease`: the node's last heartbeat is too old, so it must not make changes · `ended`: other nodes have declared
 * the node dead.
 */
export type NodeState = 'serving' | 'draining' | 'no lease' | 'ended';

export interface SeenNode {
  id: string;
  name: string;
  state: NodeState;
  status: NodeStatus;
}

/**
 * A setting that differs between nodes. `sides`: the node names, grouped by value; nodes with an unknown value are left
 * out.
 */
export interface Difference {
  setting: string;
  sides: string[][];
}

export function differencesOf(nodes: readonly SeenNode[]): Difference[] {
  const alive = nodes.filter(({ state }) => state !== 'ended');
  const all = alive.map(({ name, status: { version, group, settings } }) => ({
    name,
    of: { version, group, ...settings },
  }));
  const settings = [...new Set(all.flatMap(({ of }) => Object.keys(of)))];
  return settings.flatMap((setting) => {
    const sides = new Map<string, string[]>();
    for (const { name, of } of all) {
      const value = (of as Record<string, string>)[setting];
      if (value !== undefined) sides.set(value, [...(sides.get(value) ?? []), name]);
    }
    return sides.size > 1 ? [{ setting, sides: [...sides.values()] }] : [];
  });
}

/** The number of PostgreSQL connections that each daemon holds open. */
export const connectionsPerDaemon = 5;

/** The smallest clock difference that rankd reports. */
export const maxSkewMs = 2_000;

/**
 * Returns the live daemons whose machine's clock differs from the database server's by at least `maxSkewMs`. Records
 * use the server's time, and logs use the machine's.
 */
export function skewedClocks(nodes: readonly SeenNode[]): Array<{ name: string; serverAheadMs: number }> {
  return nodes.flatMap(({ name, state, status: { serverAheadMs } }) =>
    state === 'ended' || Math.abs(serverAheadMs) < maxSkewMs ? [] : [{ name, serverAheadMs }],
  );
}

export function skewText(serverAheadMs: number): string {
  return `${Math.round(Math.abs(serverAheadMs) / 1_000)} s ${serverAheadMs > 0 ? 'behind' : 'ahead of'} the server's`;
}
