import { maxWaitMs, type RateReading } from './answer.ts';

/**
 * Reported window ends that are at most this far apart count as the same window, because the platform reports the time
 * left in whole seconds.
 */
const sameWindowMs = 2_000;
/** The platform usually reports the time left in the window, rounded up to a multiple of this, as Envoy does. */
const roundingMs = 1_000;
/**
 * Heavy lanes leave this share of the slots free at the start of a window, and gradually less toward its end.
 * Otherwise, a later caller would find all slots spent.
 */
const headroomShare = 0.1;
/** Heavy lanes can start calls at least this many times as fast as if they were spread evenly over a window. */
const heavySpeedup = 10;
/**
 * Calls are spaced out until the platform has accepted this many, so that few calls exceed a limit that the platform
 * does not report.
 */
const cautiousCalls = 50;
/**
 * While the headers are in doubt, each refusal multiplies the pace by `decrease`, and each window adds `increase` times
 * the limit to it.
 */
const decrease = 0.5;
const increase = 0.25;
/** The pace never falls below this share of the limit. */
const minPaceShare = 1 / 60;
/**
 * In a shared account, release times are rounded up to multiples of this share of a window, so that a node's slots can
 * share an entry, which limits the size of the account.
 */
const grainShare = 1 / 200;

/**
 * The rate-limit state of one operation, which determines how many calls can start, and when. It is a plain record, so
 * that a ledger can store it; the functions below update it. Times are in milliseconds on the ledger's clock.
 *
 * Each call spends a slot. Until the platform reports when its window ends, a slot stays spent for a whole window, so
 * that no platform window can exceed the limit, whenever it begins. After that, the platform's reported count and
 * window end apply, until it refuses a call even though its count has calls left. Some other limit must then be in
 * force (Open Cloud's page on rate limits allows for that), so calls start one at a time, at a pace that each refusal
 * halves and that otherwise rises slowly. Once the pace is back at the limit, the platform's count applies again.
 */
export interface Account {
  limit: number;
  windowMs: number;
  /** The spacing of calls that must not start in a burst: those of heavy lanes, and the first ones. */
  burstSpacingMs: number;
  /** True if only one process uses the account. */
  isExclusive?: boolean;
  /** The release times of the spent slots, ascending. */
  spent: Release[];
  /**
   * No call starts before this time. It advances with every start while calls are spaced out, e.g. after a closure.
   */
  opensAt: number;
  closedUntil: number;
  heavyOpensAt: number;
  spacingMs: number;
  windowEndsAt?: number;
  /** True if the platform rounds the reported time left down instead of up. */
  roundsDown: boolean;
  /** Calls in flight on all nodes. */
  inFlight: number;
  /** The number of calls that the platform must still accept before calls can start in a burst. */
  caution: number;
  /** Set once the headers have been in doubt: the pace in calls per window at the time `since`. See `isInDoubt`. */
  doubt?: { pace: number; since: number };
  /** Call counts by lane. */
  shares: ShareCounts;
  /** Call counts by node and lane. */
  asked: ShareCounts;
  nodes: Record<string, NodeDemand>;
}

export interface NodeDemand {
  at: number;
  inFlight: number;
  waiting: number;
}

/** A number of spent slots that become free at the time `at`. */
export interface Release {
  at: number;
  slots: number;
  /** The node that spent them; absent if unknown, e.g. for calls made outside rankd. */
  by?: string;
  /**
   * `reserved`: spent for a call that has not started · `guess`: stands in for an unknown count until the next report.
   */
  for?: 'reserved' | 'guess';
}

export function openAccount(options: Pick<Account, 'limit' | 'windowMs' | 'burstSpacingMs' | 'isExclusive'>): Account {
  return {
    ...{ ...options, spent: [], opensAt: 0, closedUntil: 0, heavyOpensAt: 0, spacingMs: 0 },
    ...{ roundsDown: false, inFlight: 0, caution: cautiousCalls, shares: noCalls(), asked: noCalls(), nodes: {} },
  };
}

function noCalls(): ShareCounts {
  return { current: {}, previous: {} };
}

/**
 * Marks all slots but one as spent, because nothing is known about the platform's current window. They stay spent until
 * a window has passed or a response reports the platform's count. The first caller gets the remaining slot.
 */
export function spendAll(account: Account, now: number): void {
  account.spent = [{ at: now + account.windowMs, slots: account.limit - 1, for: 'guess' }];
}

/** True while the number of spent slots is unknown; see `spendAll`. */
export function isUnknown(account: Account, now: number): boolean {
  return stillSpent(account, now).some((release) => release.for === 'guess');
}

export function schedule(account: Account, now: number): Schedule {
  const releases = soonestReleases(account, now);
  let startsAt = Math.max(now, account.opensAt);
  let free = account.limit - slotsOf(releases);
  let released = 0;
  const guess = releases.findLastIndex((release) => release.for === 'guess');
  let heavyStartsAt = account.heavyOpensAt;
  const next = (isHeavy = false) => {
    for (;;) {
      const release = releases[released];
      const heavyAt = isHeavy ? heavyStartsAt : startsAt;
      const leavesSlots = isHeavy && guess < released; // even a heavy call can take the slot that `spendAll` leaves
      const start = Math.max(startsAt, heavyAt, freeAt(account, { free, refillsAt: release?.at, leavesSlots }));
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

/** Returns the spent slots with their earliest release times. For a reserved slot, assumes that its call starts now. */
function soonestReleases(account: Account, now: number): Release[] {
  const spent = stillSpent(account, now);
  const soonest = releaseAt(account, now);
  if (!spent.some((release) => release.for === 'reserved' && release.at > soonest)) return spent.slice();
  return spent
    .map((release) => (release.for === 'reserved' ? { ...release, at: Math.min(release.at, soonest) } : release))
    .sort((one, other) => one.at - other.at);
}

/** Predicts the start times of successive calls. Calls in heavy lanes leave some slots free. */
export interface Schedule {
  next(isHeavy?: boolean): number;
  /** Like `next`, but also counts the slot as spent in this schedule. */
  take(isHeavy?: boolean): number;
}

/** Returns the number of calls that could start now. */
export function left(account: Account, now: number): number {
  if (now < account.closedUntil) return 0;
  return Math.max(0, account.limit - slotsOf(stillSpent(account, now)));
}

export function spend(account: Account, now: number, { isHeavy = false, by }: { isHeavy?: boolean; by?: string } = {}) {
  account.inFlight += 1;
  paceAfter(account, now, isHeavy);
  addRelease(account, { at: releaseAt(account, now), slots: 1, ...(by !== undefined && { by }) });
}

/** Sets the earliest start of the calls that follow one that starts now. */
function paceAfter(account: Account, now: number, isHeavy: boolean): void {
  const spacingMs = heavySpacingMs(account);
  // Heavy calls can catch up after a late start, but by at most five spacings.
  if (isHeavy) account.heavyOpensAt = Math.max(account.heavyOpensAt, now - 5 * spacingMs) + spacingMs;
  account.opensAt = now + spacingAfter(account, now);
}

/**
 * Spends a slot for a call that can start at any time up to `until`. Returns the slot's release time: a whole window
 * after `until`, or the end of the platform's window if the call is certain to start within it. The caller must then
 * use `startReserved` or `returnSlot`.
 */
export function reserveSlot(account: Account, now: number, { by, until }: { by: string; until: number }): number {
  return addRelease(account, { at: releaseAt(account, Math.max(now, until)), slots: 1, by, for: 'reserved' });
}

export function startReserved(account: Account, now: number, slot: { by: string; at: number }): void {
  returnSlot(account, slot);
  spend(account, now, slot);
}

/** Counts a call's slot from now instead of from its grant, because the call started late. */
export function startLate(account: Account, now: number, { by }: { by: string }): void {
  returnSlot(account, { by });
  addRelease(account, { at: releaseAt(account, now), slots: 1, by });
}

/**
 * Frees the node's reserved slot that has the release time `at` or, without `at`, the slot with the latest release time
 * that the node has spent on a started call.
 */
export function returnSlot(account: Account, { by, at }: { by: string; at?: number }): void {
  const release = account.spent.findLast((one) =>
    at === undefined
      ? one.by === by && one.for === undefined
      : one.by === by && one.for === 'reserved' && one.at === at,
  );
  if (release === undefined) return; // the slot is already free
  release.slots -= 1;
  if (release.slots === 0) account.spent.splice(account.spent.indexOf(release), 1);
}

export function finish(account: Account, reading: RateReading, now: number): void {
  account.inFlight = Math.max(0, account.inFlight - 1);
  account.limit = reading.limit ?? account.limit;
  account.windowMs = reading.windowMs ?? account.windowMs;
  if (isInDoubt(account, now)) return;
  if (reading.remaining !== undefined && reading.resetMs !== undefined) {
    adopt(account, { remaining: reading.remaining, resetMs: reading.resetMs }, now);
  }
}

export function accepted(account: Account): void {
  if (account.caution > 0) account.caution -= 1;
}

/**
 * Puts the platform's count in doubt for a while, because the platform refused a call even though its count had calls
 * left.
 */
export function contradicted(account: Account, now: number): void {
  // The call was sent before the last refusal, so it adds no information.
  if (isInDoubt(account, now) && now < account.closedUntil) return;
  const pace = isInDoubt(account, now) ? paceAt(account, now) : account.limit;
  account.doubt = { pace: Math.max(pace * decrease, account.limit * minPaceShare), since: now };
  close(account, spacingAfter(account, now), now);
}

/**
 * Lets no call start for `ms`, at most `maxWaitMs`. Afterwards, calls are spaced evenly for a window, or until the
 * platform reports its count.
 */
export function close(account: Account, ms: number, now: number): void {
  account.closedUntil = Math.max(account.closedUntil, now + Math.min(ms, maxWaitMs));
  account.opensAt = Math.max(account.opensAt, account.closedUntil);
  account.spacingMs = account.windowMs / account.limit;
}

/** True if a call that has a slot can start now without delaying the next one. */
export function isUnpaced(account: Account, now: number): boolean {
  return account.opensAt <= now && spacingAfter(account, now) === 0;
}

/**
 * Returns the time from which a call can take one of the `free` slots, unless another becomes free first. The fewer
 * slots are free, the longer a heavy lane waits, and it never takes the last one.
 */
function freeAt(
  { limit, windowMs }: Account,
  { free, refillsAt, leavesSlots }: { free: number; refillsAt: number | undefined; leavesSlots: boolean },
): number {
  if (free <= 0) return Number.POSITIVE_INFINITY;
  const headroom = Math.floor(limit * headroomShare);
  if (!leavesSlots || headroom === 0 || free > headroom) return Number.NEGATIVE_INFINITY;
  return (refillsAt ?? 0) - ((free - 1) * windowMs) / headroom;
}

/**
 * Adopts the count that the platform reports. It may omit calls in flight, and responses can arrive out of order, so
 * within a window the adopted count never falls, and it always includes this account's own calls since the window
 * began. Reported window ends are rounded up, so the earliest one is the most accurate. Within a window, the adopted
 * end therefore never moves to a later time, and a call that was promised a slot in the next window gets it. The count
 * excludes reserved slots.
 */
function adopt(account: Account, { remaining, resetMs }: { remaining: number; resetMs: number }, now: number): void {
  if (resetMs === 0) account.roundsDown = true;
  // At most one window, because a longer time must be an epoch timestamp or an error.
  const endsAt = now + Math.min(resetMs + (account.roundsDown ? roundingMs : 0), account.windowMs);
  const { windowEndsAt = Number.NEGATIVE_INFINITY } = account;
  const isSameWindow = Math.abs(endsAt - windowEndsAt) <= Math.min(sameWindowMs, account.windowMs / 2);
  const isOver = now >= windowEndsAt;
  if (isSameWindow && isOver) return; // a late response describes the previous window, not the one that has begun
  const counted = Math.max(0, account.limit - remaining);
  const current = stillSpent(account, now);
  const reserved = current.filter((release) => release.for === 'reserved');
  const own = isOver || isSameWindow ? current.filter((release) => release.for === undefined) : [];
  const unknown = isOver || isSameWindow ? counted - slotsOf(own) : counted + account.inFlight;
  account.windowEndsAt = isSameWindow ? Math.min(endsAt, windowEndsAt) : endsAt;
  // A response that arrives during a closure answers a call made before it, so it does not end the spacing.
  if (now >= account.closedUntil) {
    account.spacingMs = 0;
    account.opensAt = Math.min(account.opensAt, now + spacingAfter(account, now));
  }
  account.spent = reserved;
  for (const release of own) addRelease(account, { ...release, at: account.windowEndsAt });
  if (unknown > 0) addRelease(account, { at: account.windowEndsAt, slots: unknown });
}

/**
 * Adds spent slots and returns their release time. Slots of one node that become free together for the same reason
 * share an entry.
 */
function addRelease(account: Account, release: Release): number {
  const { spent, windowMs, windowEndsAt } = account;
  const grain = windowMs * grainShare;
  const isExact = account.isExclusive || release.by === undefined || release.at === windowEndsAt;
  const at = isExact ? release.at : Math.ceil(release.at / grain) * grain;
  const after = spent.findIndex((one) => one.at > at); // some are later if the window used to be longer
  const index = after < 0 ? spent.length : after;
  const before = spent[index - 1];
  if (before?.at === at && before.by === release.by && before.for === release.for) before.slots += release.slots;
  else spent.splice(index, 0, { ...release, at });
  return at;
}

/**
 * Returns the release time of a slot that is spent now. A call sent near the end of the platform's window may arrive in
 * the next one, so its slot stays spent for a whole window.
 */
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

/** Returns the pace in calls per window while the headers are in doubt. */
function paceAt({ doubt, limit, windowMs }: Account, at: number): number {
  const { pace, since } = doubt ?? { pace: limit, since: at };
  return pace + (increase * limit * (at - since)) / windowMs;
}

function heavySpacingMs({ burstSpacingMs, windowMs, limit }: Account): number {
  return Math.min(burstSpacingMs, windowMs / (limit * heavySpeedup));
}

/** Removes the slots whose release time has passed. Returns the others, earliest release first. */
export function stillSpent({ spent }: Account, now: number): Release[] {
  const first = spent.findIndex(({ at }) => at > now);
  spent.splice(0, first < 0 ? spent.length : first);
  return spent;
}

export function slotsOf(releases: readonly Release[]): number {
  return releases.reduce((sum, { slots }) => sum + slots, 0);
}

/**
 * The number of calls that each lane requested in the current and the previous period. A period is as long as a window.
 */
export interface ShareCounts {
  current: Record<string, number>;
  previous: Record<string, number>;
  beganAt?: number;
}

/**
 * Counts a call toward a node's lane. Returns true if the lane is now heavy, that is, if it has requested more than its
 * fair share of a window's slots (one share is set aside for a new lane). Refused calls count too; otherwise, a lane
 * with excessive demand would become light again later in the window and overtake the others.
 */
export function countTowardLane(
  { shares, asked, limit, windowMs }: Account,
  now: number,
  { lane, node }: { lane: string; node: string },
): boolean {
  countCall(asked, { lane: laneOfNode(node, lane), now, windowMs });
  const calls = countCall(shares, { lane, now, windowMs });
  const lanes = new Set([...Object.keys(shares.current), ...Object.keys(shares.previous)]).size;
  return calls > limit / (lanes + 1);
}

export function laneOfNode(node: string, lane: string): string {
  return `${node} ${lane}`;
}

function countCall(
  counts: ShareCounts,
  { lane, now, windowMs }: { lane: string; now: number; windowMs: number },
): number {
  const { beganAt = Number.NEGATIVE_INFINITY } = counts;
  const windows = Math.floor((now - beganAt) / windowMs);
  if (windows >= 1) {
    counts.previous = windows === 1 ? counts.current : {};
    counts.current = {};
    counts.beganAt = windows === 1 ? beganAt + windowMs : now;
  }
  counts.current[lane] = (counts.current[lane] ?? 0) + 1;
  return callsOf(counts, lane, { now, windowMs });
}

/** Estimates the number of calls that the lane made over the last window. */
export function callsOf(
  counts: ShareCounts,
  lane: string,
  { now, windowMs }: { now: number; windowMs: number },
): number {
  const passed = (now - (counts.beganAt ?? now)) / windowMs;
  const since = (calls: number | undefined, until: number) => (calls ?? 0) * Math.min(1, Math.max(0, until - passed));
  return since(counts.current[lane], 2) + since(counts.previous[lane], 1);
}
