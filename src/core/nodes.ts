/** What a daemon shows of itself to all who share its store. */
export interface NodeStatus {
  version: string;
  /** e.g. `http://10.0.0.5:7265` */
  url: string;
  /** The group that it changes ranks in, in words. */
  group: string;
  isDraining: boolean;
  uptimeSeconds: number;
  requestsInFlight: number;
  /** Calls that wait for their turn in the platform's budget. */
  callsWaiting: number;
  /** Calls that could start now, by kind; empty if the platform sets no pace. */
  budget: Array<{ operation: string; limit: number; left: number; waiting: number }>;
  /** Why the credential is not accepted; null if it is. */
  credentialProblem: string | null;
  /** How far the server's clock is ahead of that of the daemon's machine. */
  serverAheadMs: number;
  /** Of each setting that all nodes should share, by name: two nodes with the same fingerprint have the same value. */
  settings: Record<string, string>;
}

/** `no lease`: it has not been heard of for so long that it may not work · `ended`: others have given it up. */
export type NodeState = 'serving' | 'draining' | 'no lease' | 'ended';

/** A daemon as all who share its store see it. */
export interface SeenNode {
  id: string;
  name: string;
  state: NodeState;
  status: NodeStatus;
}

/** What nodes do not agree on: who agrees with whom, by name. Those whose value is not known are left out. */
export interface Difference {
  setting: string;
  sides: string[][];
}

/** What differs between the nodes that have not ended: the version, the group, and settings by name. */
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

/** From here on, clocks are told to be apart. */
export const maxSkewMs = 2_000;

/** The machines of daemons that have not ended whose clocks are apart from the server's: records go by the server's, their logs by their own. */
export function clocksApart(nodes: readonly SeenNode[]): Array<{ name: string; serverAheadMs: number }> {
  return nodes.flatMap(({ name, state, status: { serverAheadMs } }) =>
    state === 'ended' || Math.abs(serverAheadMs) < maxSkewMs ? [] : [{ name, serverAheadMs }],
  );
}

/** e.g. `3 s behind the server's` */
export function skewText(serverAheadMs: number): string {
  return `${Math.round(Math.abs(serverAheadMs) / 1_000)} s ${serverAheadMs > 0 ? 'behind' : 'ahead of'} the server's`;
}
