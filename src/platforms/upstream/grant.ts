import {
  type Account,
  callsOf,
  isUnknown,
  laneOfNode,
  type NodeDemand,
  reserveSlot,
  schedule,
  slotsOf,
  spend,
  startReserved,
  stillSpent,
} from './budget.ts';

/** A node's reported demand expires after this, so a node repeats the report while any of its calls wait. */
const demandMs = 2_000;
/** A node whose latest request is older than this has no calls in flight, because no call takes longer. */
const longestCallMs = 15_000;

export interface GrantRequest {
  node: string;
  inFlight: number;
  waiting: number;
  /** The queued calls that could be granted now, in order. */
  requests: readonly SlotRequest[];
}

export interface SlotRequest {
  /**
   * `start`: a call starts now · `reserve`: a slot is reserved for a call that starts by `until` · `reserved`: a call
   * starts with its reserved slot, which has the release time `slotAt`.
   */
  kind: 'start' | 'reserve' | 'reserved';
  isHeavy: boolean;
  /** True if the call belongs to a change that has begun. Such a call does not have to leave slots for other nodes. */
  isBegun: boolean;
  until: number;
  slotAt: number;
}

/**
 * Records a node's demand, and grants as many of its requests as the budget allows now, in order. Spends the slots
 * immediately, so that no other node takes them. Returns a number for each granted request: the slot's release time for
 * `reserve`, otherwise 0.
 */
export function grant(account: Account, now: number, { requests, ...demand }: GrantRequest): number[] {
  noteDemand(account, now, demand);
  const { node } = demand;
  const granted: number[] = [];
  const isUnshared = account.isExclusive || isUnknown(account, now);
  let share = isUnshared ? Number.POSITIVE_INFINITY : shareOf(account, node, now);
  let starts = 0;
  for (const request of requests) {
    const takesSlot = request.kind !== 'reserved';
    if (takesSlot && !request.isBegun && share <= 0) break;
    const startAt = takesSlot ? schedule(account, now).next(request.isHeavy) : account.opensAt;
    if (startAt > now) break;
    granted.push(carryOut(account, now, { ...request, node }));
    if (takesSlot) share -= 1;
    if (request.kind !== 'reserve') starts += 1;
  }
  const { waiting, inFlight } = demand;
  noteDemand(account, now, { ...demand, waiting: Math.max(0, waiting - granted.length), inFlight: inFlight + starts });
  return granted;
}

function carryOut(
  account: Account,
  now: number,
  { kind, node: by, ...request }: SlotRequest & { node: string },
): number {
  if (kind === 'reserve') return reserveSlot(account, now, { by, until: request.until });
  if (kind === 'reserved') startReserved(account, now, { by, at: request.slotAt });
  else spend(account, now, { by, isHeavy: request.isHeavy });
  return 0;
}

function noteDemand(account: Account, now: number, { node, ...demand }: Omit<GrantRequest, 'requests'>): void {
  for (const [id, { at }] of Object.entries(account.nodes)) if (now - at > longestCallMs) delete account.nodes[id];
  account.nodes[node] = { at: now, ...demand };
  account.inFlight = Object.values(account.nodes).reduce((sum, one) => sum + one.inFlight, 0);
}

export function waitingElsewhere({ nodes }: Account, now: number, node: string): number {
  const others = Object.entries(nodes).filter(([id]) => id !== node);
  return others.reduce((sum, [, other]) => sum + waitingAt(other, now), 0);
}

function waitingAt({ at, waiting }: NodeDemand, now: number): number {
  return now - at > demandMs ? 0 : waiting;
}

/**
 * Returns the number of free slots that a node can take now. Each slot goes to the node whose lanes have the fewest
 * slots in this window (see `levelOf`), among the nodes that have calls waiting or, at their recent pace, are expected
 * to make calls before the window ends. A busy node therefore leaves slots for the others' demand. Any node can take
 * the slots that are left over.
 */
function shareOf(account: Account, node: string, now: number): number {
  const { limit, windowMs, windowEndsAt = now, asked } = account;
  const spent = stillSpent(account, now);
  const ahead = Math.max(0, windowEndsAt - now) / windowMs;
  const lanes = Object.keys({ ...asked.current, ...asked.previous });
  const open = Object.entries(account.nodes).map(([id, demand]) => {
    const demands = lanes
      .filter((lane) => lane.startsWith(laneOfNode(id, '')))
      .map((lane) => callsOf(asked, lane, { now, windowMs }));
    const used = slotsOf(spent.filter(({ by }) => by === id));
    const claim = waitingAt(demand, now) + Math.floor(ahead * demands.reduce((sum, calls) => sum + calls, 0));
    return { id, claim, demands, used, given: 0, level: levelOf(demands, used + 1) };
  });
  let free = limit - slotsOf(spent);
  for (; free > 0; free -= 1) {
    const [next] = open
      .filter(({ claim, given }) => given < claim)
      .sort((one, other) => one.level - other.level || (one.id < other.id ? -1 : 1));
    if (next === undefined) break;
    next.given += 1;
    next.level = levelOf(next.demands, next.used + next.given + 1);
  }
  return (open.find(({ id }) => id === node)?.given ?? 0) + Math.max(0, free);
}

/**
 * Shares `slots` fairly among a node's lanes, each up to its demand and any surplus equally, and returns the largest
 * number that a lane gets. A lane with little demand, such as rankd's own reads, therefore does not lower its node's
 * level.
 */
function levelOf(demands: readonly number[], slots: number): number {
  let left = slots;
  let richest = 0;
  for (const [index, demand] of demands.toSorted((one, other) => one - other).entries()) {
    const each = left / (demands.length - index);
    if (each <= demand) return each;
    left -= demand;
    richest = demand;
  }
  return richest + left / Math.max(1, demands.length);
}
