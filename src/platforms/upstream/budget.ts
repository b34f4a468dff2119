import { countCall, isHeavyWith, type ShareCounts } from './fair-share.ts';
import { maxWaitMs, type RateReading } from './retry-after.ts';

/** The platform gives the end of a window in whole seconds: two ends this close together belong to the same window. */
const sameWindowMs = 2_000;
/** One rounding of it, which is up: Open Cloud's headers are Envoy's. */
const roundingMs = 1_000;
/**
 * Heavy callers leave this share of the slots free when a window begins, and less and less until it ends: whoever arrives later
 * would otherwise find all of them spent.
 */
const headroomShare = 0.1;
/** Heavy callers may start their calls this much faster than evenly over a window, however short it is. */
const heavyHaste = 10;
/** The first calls do not come in a burst either: a limit that no header tells of is met by a few calls then. */
const cautiousCalls = 50;
/** While the headers are not believed: what a refusal leaves of the pace, and how much of the limit is added to it over a window. */
const decrease = 0.5;
const increase = 0.25;
/** The pace does not fall below this share of the limit. */
const leastShare = 1 / 60;
/** Slots of one node that come free within this share of a window come free together, with the last of them: a record of many nodes stays small. */
const grainShare = 1 / 200;

/**
 * How many calls of one operation may start, and when. It is a plain record, which a ledger keeps; the functions below change it.
 * Times are milliseconds of the ledger.
 *
 * Each call spends a slot. As long as the platform has not said when its window ends, a slot stays spent for a whole window: no
 * window of the platform's, wherever it begins, then sees more than the limit. Once it has said so, its count and its end hold,
 * until it refuses a call although it counts some left: then another limit is at work (Open Cloud's page on rate limits says that
 * there may be). Calls start one at a time from then on, at a pace that each refusal halves and that rises slowly. Once it is
 * back at the limit, the platform is believed again.
 */
export interface Account {
  limit: number;
  windowMs: number;
  /** How far apart calls start that would be a burst: those of heavy callers, and the first ones. */
  burstSpacingMs: number;
  /** When the spent slots come free again, ascending. */
  spent: Release[];
  /** No call starts before this. After a closure it moves on with every start, until the platform tells its count again. */
  opensAt: number;
  closedUntil: number;
  heavyOpensAt: number;
  spacingMs: number;
  /** Absent until the platform has said so. */
  windowEndsAt?: number;
  roundsDown: boolean;
  /** Calls under way, of all nodes. */
  inFlight: number;
  /** Calls that are still to be accepted before others may come in a burst. */
  caution: number;
  /** Set while the headers are not believed: the pace in calls per window at that time. */
  doubt?: { pace: number; since: number };
  shares: ShareCounts;
  /** What each lane of each node asked for, if several nodes work with this account. */
  asked: ShareCounts;
  /** Who works with this account, if several nodes do. */
  nodes: Record<string, NodeDemand>;
}

/** What a node said of itself when it asked last. */
export interface NodeDemand {
  at: number;
  inFlight: number;
  /** Its calls that wait. */
  waiting: number;
}

/** `slots` slots come free at `at`. */
export interface Release {
  at: number;
  slots: number;
  /** The node that spent them, if several do. */
  by?: string;
  /** `reserved`: for a call that has not started · `guess`: nobody knows what was spent, and a header tells better. */
  for?: 'reserved' | 'guess';
}

/** An account of which nothing is spent. */
export function openAccount({
  limit,
  windowMs,
  burstSpacingMs,
}: Pick<Account, 'limit' | 'windowMs' | 'burstSpacingMs'>): Account {
  return {
    ...{ limit, windowMs, burstSpacingMs, spent: [], opensAt: 0, closedUntil: 0, heavyOpensAt: 0, spacingMs: 0 },
    ...{ roundsDown: false, inFlight: 0, caution: cautiousCalls, shares: noCalls(), asked: noCalls(), nodes: {} },
  };
}

function noCalls(): ShareCounts {
  return { current: {}, previous: {} };
}

/**
 * Nobody knows what was spent of the window that runs: all counts as spent but for one slot, which is for whoever comes first. That holds
 * until the window is over or an answer tells the platform's count.
 */
export function startFull(account: Account, now: number): void {
  account.spent = [{ at: now + account.windowMs, slots: account.limit - 1, for: 'guess' }];
}

/** True as long as nobody knows what was spent: whoever comes first finds it out. */
export function isUntold(account: Account, now: number): boolean {
  return stillSpent(account, now).some((release) => release.for === 'guess');
}

/** When the next calls may start, one after the other. */
export function schedule(account: Account, now: number): Schedule {
  const releases = stillSpent(account, now).slice();
  let startsAt = Math.max(now, account.opensAt);
  let free = account.limit - slotsOf(releases);
  let released = 0;
  const guess = releases.findLastIndex((release) => release.for === 'guess');
  let heavyStartsAt = account.heavyOpensAt;
  const next = (isHeavy = false) => {
    for (;;) {
      const release = releases[released];
      const heavyAt = isHeavy ? heavyStartsAt : startsAt;
      const leavesSome = isHeavy && guess < released; // as `isUntold` says
      const start = Math.max(startsAt, heavyAt, freeAt(account, { free, refillsAt: release?.at, leavesSome }));
      if (release === undefined || start < release.at) {
        startsAt = start;
        return start;
      }
      startsAt = Math.max(startsAt, release.at);
      free += release.slots;
      released += 1;
    }
  };
  const take = (isHeavy = false) => {
    const start = next(isHeavy);
    free -= 1;
    releases.push({ at: start + account.windowMs, slots: 1 });
    startsAt = start + spacingAfter(account, start);
    if (isHeavy) heavyStartsAt = start + heavySpacingMs(account);
    return start;
  };
  return { next, take };
}

/** When calls may start, one after the other. Heavy callers leave some slots free. */
export interface Schedule {
  /** When the next call may start. */
  next(isHeavy?: boolean): number;
  /** The same, and takes its slot: the next question is about the call after it. */
  take(isHeavy?: boolean): number;
}

/** Calls that could start at once. */
export function left(account: Account, now: number): number {
  if (now < account.closedUntil) return 0;
  return Math.max(0, account.limit - slotsOf(stillSpent(account, now)));
}

/** A call starts. */
export function spend(account: Account, now: number, { isHeavy = false, by }: { isHeavy?: boolean; by?: string } = {}) {
  account.inFlight += 1;
  paceAfter(account, now, isHeavy);
  addRelease(account, { at: releaseAt(account, now), slots: 1, ...(by !== undefined && { by }) });
}

/** When calls start after one that starts now. */
function paceAfter(account: Account, now: number, isHeavy: boolean): void {
  const spacingMs = heavySpacingMs(account);
  if (isHeavy) account.heavyOpensAt = Math.max(account.heavyOpensAt, now - 5 * spacingMs) + spacingMs; // what began late delays no other
  account.opensAt = now + spacingAfter(account, now);
}

/**
 * Spends a slot for a call that starts at any time until `until`. It comes free a whole window after that, or with the window of the platform
 * in which the call is sure to start. Returns when: whoever starts the call, or does without it, says so.
 */
export function reserveSlot(account: Account, now: number, { by, until }: { by: string; until: number }): number {
  return addRelease(account, { at: releaseAt(account, Math.max(now, until)), slots: 1, by, for: 'reserved' });
}

/** The call that a slot was reserved for starts. */
export function startReserved(account: Account, now: number, slot: { by: string; at: number }): void {
  giveBack(account, slot);
  spend(account, now, slot);
}

/** A call that was to start earlier starts now. */
export function startLate(account: Account, now: number, { by }: { by: string }): void {
  giveBack(account, { by });
  addRelease(account, { at: releaseAt(account, now), slots: 1, by });
}

/** The call that a slot was reserved for does not come; without `at`, the one that the last slot was spent for. */
export function giveBack(account: Account, { by, at }: { by: string; at?: number }): void {
  const release = account.spent.findLast((one) =>
    at === undefined
      ? one.by === by && one.for === undefined
      : one.by === by && one.for === 'reserved' && one.at === at,
  );
  if (release === undefined) return; // it has come free by itself
  release.slots -= 1;
  if (release.slots === 0) account.spent.splice(account.spent.indexOf(release), 1);
}

/** A call has ended, with what its answer said of the budget. */
export function finish(account: Account, reading: RateReading, now: number): void {
  account.inFlight = Math.max(0, account.inFlight - 1);
  account.limit = reading.limit ?? account.limit;
  account.windowMs = reading.windowMs ?? account.windowMs;
  if (isInDoubt(account, now)) return;
  if (reading.remaining !== undefined && reading.resetMs !== undefined) {
    adopt(account, { remaining: reading.remaining, resetMs: reading.resetMs }, now);
  }
}

/** The platform carried out a call. */
export function accepted(account: Account): void {
  if (account.caution > 0) account.caution -= 1;
}

/** The platform refused a call although, by its own count, calls are left: the count is not believed for a while. */
export function contradicted(account: Account, now: number): void {
  if (isInDoubt(account, now) && now < account.closedUntil) return; // a call from before the last refusal: it says the same
  const pace = isInDoubt(account, now) ? paceAt(account, now) : account.limit;
  account.doubt = { pace: Math.max(pace * decrease, account.limit * leastShare), since: now };
  close(account, spacingAfter(account, now), now);
}

/** No call starts for `ms`. After that calls start one at a time, evenly over a window, until the platform tells its count again. */
export function close(account: Account, ms: number, now: number): void {
  account.closedUntil = Math.max(account.closedUntil, now + Math.min(ms, maxWaitMs));
  account.opensAt = Math.max(account.opensAt, account.closedUntil);
  account.spacingMs = account.windowMs / account.limit;
}

/** Counts a call of a lane, for its node if there are several. True if the lane is heavy with it. */
export function countsAsHeavy(
  { shares, asked, limit, windowMs }: Account,
  now: number,
  { lane, node }: { lane: string; node?: string },
): boolean {
  if (node !== undefined) countCall(asked, { lane: laneOfNode(node, lane), now, windowMs });
  return isHeavyWith(shares, { lane, now, limit, windowMs });
}

/** How a lane of one node is told from the same of another. */
export function laneOfNode(node: string, lane: string): string {
  return `${node} ${lane}`;
}

/** True if a call that has its slot may start without a look at the others. */
export function isAtEase(account: Account, now: number): boolean {
  return account.opensAt <= now && spacingAfter(account, now) === 0;
}

/**
 * When one of `free` slots may be taken before the others are refilled. Heavy callers wait until fewer have to be left: in the
 * end one, which they never take.
 */
function freeAt(
  { limit, windowMs }: Account,
  { free, refillsAt, leavesSome }: { free: number; refillsAt: number | undefined; leavesSome: boolean },
): number {
  if (free <= 0) return Number.POSITIVE_INFINITY;
  const headroom = Math.floor(limit * headroomShare);
  if (!leavesSome || headroom === 0 || free > headroom) return Number.NEGATIVE_INFINITY;
  return (refillsAt ?? 0) - ((free - 1) * windowMs) / headroom;
}

/**
 * Adopts the platform's count. It may lack calls in flight, and answers can arrive out of order: within a window the count only
 * rises, and our own calls since its beginning are in it. The end is rounded up, so the earliest that was told is nearest to it;
 * as it never moves back, a call that was promised a slot in the next window gets it. What is reserved is not in the count.
 */
function adopt(account: Account, { remaining, resetMs }: { remaining: number; resetMs: number }, now: number): void {
  if (resetMs === 0) account.roundsDown = true;
  // At most a window, as more would be an epoch or an error.
  const endsAt = now + Math.min(resetMs + (account.roundsDown ? roundingMs : 0), account.windowMs);
  const { windowEndsAt = Number.NEGATIVE_INFINITY } = account;
  const isSameWindow = Math.abs(endsAt - windowEndsAt) <= Math.min(sameWindowMs, account.windowMs / 2);
  const isOver = now >= windowEndsAt;
  if (isSameWindow && isOver) return; // a late answer, which knows nothing of the window that has begun
  const counted = Math.max(0, account.limit - remaining);
  const kept = stillSpent(account, now);
  const reserved = kept.filter((release) => release.for === 'reserved');
  const own = isOver || isSameWindow ? kept.filter((release) => release.for === undefined) : [];
  const unknown = isOver || isSameWindow ? counted - slotsOf(own) : counted + account.inFlight;
  account.windowEndsAt = isSameWindow ? Math.min(endsAt, windowEndsAt) : endsAt;
  // An answer that arrives during a closure belongs to a call from before it, and does not end it.
  if (now >= account.closedUntil) {
    account.spacingMs = 0;
    account.opensAt = Math.min(account.opensAt, now + spacingAfter(account, now));
  }
  account.spent = reserved;
  for (const release of own) addRelease(account, { ...release, at: account.windowEndsAt });
  if (unknown > 0) addRelease(account, { at: account.windowEndsAt, slots: unknown });
}

/** Adds spent slots; returns when they come free. What comes free at once for the same reason is one entry. */
function addRelease(account: Account, release: Release): number {
  const { spent, windowMs, windowEndsAt } = account;
  const grain = windowMs * grainShare;
  const isExact = release.by === undefined || release.at === windowEndsAt;
  const at = isExact ? release.at : Math.ceil(release.at / grain) * grain;
  const after = spent.findIndex((one) => one.at > at); // there are some if the window was longer before
  const index = after < 0 ? spent.length : after;
  const before = spent[index - 1];
  if (before?.at === at && before.by === release.by && before.for === release.for) before.slots += release.slots;
  else spent.splice(index, 0, { ...release, at });
  return at;
}

/** When a slot that is spent now comes free. A call so near the end of the platform's window may get there in the next one. */
function releaseAt({ windowEndsAt = Number.NEGATIVE_INFINITY, windowMs }: Account, now: number): number {
  return now + 2 * roundingMs < windowEndsAt ? windowEndsAt : now + windowMs;
}

function spacingAfter(account: Account, start: number): number {
  const { caution, burstSpacingMs, windowMs, closedUntil, spacingMs } = account;
  const cautiousMs = caution > 0 ? burstSpacingMs : 0;
  if (isInDoubt(account, start)) return windowMs / paceAt(account, start);
  return Math.max(cautiousMs, start < closedUntil + windowMs ? spacingMs : 0);
}

function isInDoubt(account: Account, at: number): boolean {
  return account.doubt !== undefined && paceAt(account, at) < account.limit;
}

/** In calls per window, while the headers are not believed. */
function paceAt({ doubt, limit, windowMs }: Account, at: number): number {
  const { pace, since } = doubt ?? { pace: limit, since: at };
  return pace + (increase * limit * (at - since)) / windowMs;
}

function heavySpacingMs({ burstSpacingMs, windowMs, limit }: Account): number {
  return Math.min(burstSpacingMs, windowMs / (limit * heavyHaste));
}

/** The slots that are not free, earliest release first. */
export function stillSpent({ spent }: Account, now: number): Release[] {
  const kept = spent.findIndex(({ at }) => at > now);
  spent.splice(0, kept < 0 ? spent.length : kept);
  return spent;
}

export function slotsOf(releases: readonly Release[]): number {
  return releases.reduce((sum, { slots }) => sum + slots, 0);
}
