import {
  type Account,
  isUntold,
  laneOfNode,
  type NodeDemand,
  reserveSlot,
  schedule,
  slotsOf,
  spend,
  startReserved,
  stillSpent,
} from './budget.ts';
import { callsOf } from './fair-share.ts';

/** What a node said this long ago of itself no longer counts: it says so again while anybody waits there. */
const demandMs = 2_000;
/** No call is under way for longer than this: those of a node that has ended fall out of the count. */
const longestCallMs = 15_000;

/** What a node wants of the budget. */
export interface Question {
  node: string;
  /** Its calls under way. */
  inFlight: number;
  /** All of its calls that wait for a slot. */
  waiting: number;
  /** Those that could start or be reserved now, the first one first. */
  asks: readonly Ask[];
}

export interface Ask {
  /** `start` · `reserve`: a slot for a call that starts at any time until `until` · `reserved`: a call for which the slot `slotAt` is reserved starts. */
  kind: 'start' | 'reserve' | 'reserved';
  isHeavy: boolean;
  /** True for a call of a change that has begun: no other node's share holds it up. */
  isBegun: boolean;
  until: number;
  slotAt: number;
}

/**
 * Notes what a node says of itself, and grants as many of its asks as can be carried out now, in order. Returns of each that is granted when
 * its slot comes free. All is spent at once, so that nobody else takes it.
 */
export function grant(account: Account, now: number, { asks, ...demand }: Question): number[] {
  noteDemand(account, now, demand);
  const { node } = demand;
  const granted: number[] = [];
  let share = isUntold(account, now) ? Number.POSITIVE_INFINITY : shareOf(account, node, now);
  let starts = 0;
  for (const ask of asks) {
    const takesSlot = ask.kind !== 'reserved';
    if (takesSlot && !ask.isBegun && share <= 0) break;
    const startAt = takesSlot ? schedule(account, now).next(ask.isHeavy) : account.opensAt;
    if (startAt > now) break;
    granted.push(carryOut(account, now, { ...ask, node }));
    if (takesSlot) share -= 1;
    if (ask.kind !== 'reserve') starts += 1;
  }
  const { waiting, inFlight } = demand;
  noteDemand(account, now, { ...demand, waiting: Math.max(0, waiting - granted.length), inFlight: inFlight + starts });
  return granted;
}

function carryOut(account: Account, now: number, { kind, node: by, ...ask }: Ask & { node: string }): number {
  if (kind === 'reserve') return reserveSlot(account, now, { by, until: ask.until });
  if (kind === 'reserved') startReserved(account, now, { by, at: ask.slotAt });
  else spend(account, now, { by, isHeavy: ask.isHeavy });
  return 0;
}

function noteDemand(account: Account, now: number, { node, ...demand }: Omit<Question, 'asks'>): void {
  for (const [id, { at }] of Object.entries(account.nodes)) if (now - at > longestCallMs) delete account.nodes[id];
  account.nodes[node] = { at: now, ...demand };
  account.inFlight = Object.values(account.nodes).reduce((sum, one) => sum + one.inFlight, 0);
}

/** How many calls wait at the other nodes. */
export function waitingElsewhere({ nodes }: Account, now: number, node: string): number {
  const others = Object.entries(nodes).filter(([id]) => id !== node);
  return others.reduce((sum, [, other]) => sum + waitingAt(other, now), 0);
}

function waitingAt({ at, waiting }: NodeDemand, now: number): number {
  return now - at > demandMs ? 0 : waiting;
}

/**
 * How many of the free slots a node may take now. What is free goes, slot by slot, to the one whose lanes have least of the window, as long as
 * calls of it wait, or may still come before the platform's window ends at the pace of late; what is over goes to whoever asks. So a node that
 * asks for much leaves to the others what they will ask for.
 */
function shareOf(account: Account, node: string, now: number): number {
  const { limit, windowMs, windowEndsAt = now, asked } = account;
  const spent = stillSpent(account, now);
  const ahead = Math.max(0, windowEndsAt - now) / windowMs;
  const lanes = Object.keys({ ...asked.current, ...asked.previous });
  const open = Object.entries(account.nodes).map(([id, demand]) => {
    const wants = lanes
      .filter((lane) => lane.startsWith(laneOfNode(id, '')))
      .map((lane) => callsOf(asked, lane, { now, windowMs }));
    const used = slotsOf(spent.filter(({ by }) => by === id));
    const claim = waitingAt(demand, now) + Math.floor(ahead * wants.reduce((sum, calls) => sum + calls, 0));
    return { id, claim, wants, used, given: 0, level: levelOf(wants, used + 1) };
  });
  let free = limit - slotsOf(spent);
  for (; free > 0; free -= 1) {
    const [next] = open
      .filter(({ claim, given }) => given < claim)
      .sort((one, other) => one.level - other.level || (one.id < other.id ? -1 : 1));
    if (next === undefined) break;
    next.given += 1;
    next.level = levelOf(next.wants, next.used + next.given + 1);
  }
  return (open.find(({ id }) => id === node)?.given ?? 0) + Math.max(0, free);
}

/**
 * How much of so many slots the richest lane of a node has, if no lane has more than it wants as long as another has less than that. So a lane
 * that asks for little, as rankd's own reads do, makes its node look no poorer than it is.
 */
function levelOf(wants: readonly number[], slots: number): number {
  let left = slots;
  let richest = 0;
  for (const [index, want] of wants.toSorted((one, other) => one - other).entries()) {
    const each = left / (wants.length - index);
    if (each <= want) return each;
    left -= want;
    richest = want;
  }
  return richest + left / Math.max(1, wants.length);
}
