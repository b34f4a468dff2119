/** The status that a daemon publishes to all daemons on its store. */
export interface NodeStatus {
  version: string;
  /** e.g. `http://10.0.0.5:7265` */
  url: string;
  /** The title of the group whose ranks the daemon changes. */
  group: string;
  /** The address of the daemon's dashboard, if the dashboard always listens. */
  page?: string | null;
  isDraining: boolean;
  uptimeSeconds: number;
  requestsInFlight: number;
  /** Calls waiting for the platform's budget. */
  callsWaiting: number;
  /** The platform's budget for each operation; empty if the platform has no limits. */
  budget: Array<{ operation: string; limit: number; left: number; waiting: number }>;
  /** The reason the credential is refused; null if it is accepted. */
  credentialProblem: string | null;
  /** The database server's clock minus the clock of the daemon's machine. */
  serverAheadMs: number;
  /** A fingerprint of each setting that all nodes should share, by name: equal fingerprints mean equal values. */
  settings: Record<string, string>;
}

/** `no lease`: its heartbeat is too old, so it must not make changes · `ended`: other nodes have declared it dead. */
export type NodeState = 'serving' | 'draining' | 'no lease' | 'ended';

/** A daemon as all daemons on its store see it. */
export interface SeenNode {
  id: string;
  name: string;
  state: NodeState;
  status: NodeStatus;
}

/**
 * A setting that differs between nodes. `sides`: node names, grouped by equal values; nodes whose value is unknown are
 * left out.
 */
export interface Difference {
  setting: string;
  sides: string[][];
}

/** Returns the differences in version, group and settings between the nodes that have not ended. */
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
 * Returns the live daemons on machines whose clocks differ from the database server's: records use the server's time,
 * and logs use the machine's.
 */
export function clocksApart(nodes: readonly SeenNode[]): Array<{ name: string; serverAheadMs: number }> {
  return nodes.flatMap(({ name, state, status: { serverAheadMs } }) =>
    state === 'ended' || Math.abs(serverAheadMs) < maxSkewMs ? [] : [{ name, serverAheadMs }],
  );
}

/** Returns a text such as `3 s behind the server's`. */
export function skewText(serverAheadMs: number): string {
  return `${Math.round(Math.abs(serverAheadMs) / 1_000)} s ${serverAheadMs > 0 ? 'behind' : 'ahead of'} the server's`;
}
