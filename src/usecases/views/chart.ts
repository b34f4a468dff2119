import { isoTime } from '../../base/time.ts';
import type { ChangeState } from '../../core/model.ts';
import type { ChangeTally } from '../../ports/index.ts';
import type { DaemonContext } from '../daemon-context.ts';

/** The number of changes in a period, by outcome; null until they are counted. */
interface ChartBar {
  /** The start of the period, in epoch milliseconds. */
  from: number;
  promotions: number | null;
  demotions: number | null;
  refused: number | null;
  failed: number | null;
}

interface ChartView {
  /** The last 24 hours, including the current one; oldest first. */
  hours: ChartBar[];
  /** The last 30 days, including today, in this machine's time zone. */
  days: ChartBar[];
  /** False while older periods are still being counted. */
  isComplete: boolean;
  /** The number of changes requested with each key in the last 24 hours; `undefined` until they are counted. */
  ofKeys: ReadonlyMap<string, number> | undefined;
  /** The number of today's changes in each state; `undefined` until they are counted. */
  today: Record<ChangeState, number> | undefined;
}

/** Every time zone's offset is a multiple of 15 minutes, so hours and days consist of whole slices in all zones. */
const sliceMs = 15 * 60_000;
const hourMs = 3_600_000;
const hours = 24;
const days = 30;
/** The chart recounts slices that ended less than this long ago, because their changes can still end differently. */
const finalAfterMs = hourMs;
/** After counting for this long, the chart pauses for `restMs`, so that other work can use the store and the thread. */
const workMs = 5;
const restMs = 15;
/** A view waits at most this long for missing counts. */
const maxWaitMs = 10;

type Slices = Map<number, readonly ChangeTally[]>;

/**
 * Counts changes for the chart, and caches the counts in memory. It counts a few slices at a time, so that no caller
 * has to wait while millions of changes are counted.
 */
export class Chart {
  readonly #report: () => void;
  #group: string | undefined;
  #slices: Slices = new Map();
  #filling: Promise<void> | undefined;

  /** `report` is called when the counts are complete, if a view was returned without waiting for them. */
  constructor(report: () => void) {
    this.#report = report;
  }

  async view(app: DaemonContext, stop: AbortSignal): Promise<ChartView> {
    const { clock, group } = app;
    if (this.#group !== group.title) this.#slices = new Map();
    this.#group = group.title;
    const now = clock.now();
    const [hourStarts, dayStarts] = [startsOfHours(now), startsOfDays(now)];
    const first = Math.min(hourStarts[0] ?? now, dayStarts[0] ?? now);
    const end = startOfSlice(now) + sliceMs;
    if (this.#filling === undefined) {
      for (const at of this.#slices.keys())
        if (at < startOfSlice(first) || at + sliceMs + finalAfterMs > now) this.#slices.delete(at);
      this.#filling = this.#fill(app, { first, end, stop }).finally(() => {
        this.#filling = undefined;
      });
    }
    const isFilled = await Promise.race([
      this.#filling.then(() => true),
      new Promise<boolean>((resolve) => setTimeout(() => resolve(false), maxWaitMs).unref()),
    ]);
    if (!isFilled) void this.#filling?.then(this.#report, () => undefined);
    const bars = (starts: number[]) =>
      starts.map((from, index) => barOf(this.#slices, { from, until: starts[index + 1] ?? end }));
    const dayAgo = end - hours * hourMs;
    const [ofHours, ofDays] = [bars(hourStarts), bars(dayStarts)];
    const isComplete = [...ofHours, ...ofDays].every(({ refused }) => refused !== null);
    return {
      ...{ hours: ofHours, days: ofDays, isComplete },
      ofKeys: keysIn(this.#slices, { from: dayAgo, until: end }),
      today: statesIn(this.#slices, { from: dayStarts.at(-1) ?? now, until: end }),
    };
  }

  async #fill(
    { store, group, clock }: DaemonContext,
    { first, end, stop }: { first: number; end: number; stop: AbortSignal },
  ): Promise<void> {
    const slices = this.#slices;
    let workingSince = clock.monotonic();
    for (
      let since = end - sliceMs;
      since >= startOfSlice(first) && !stop.aborted && slices === this.#slices;
      since -= sliceMs
    ) {
      if (slices.has(since)) continue;
      slices.set(since, await store.tallyChanges({ group: group.title, since, until: since + sliceMs }));
      if (clock.monotonic() - workingSince < workMs) continue;
      await clock.sleep(restMs, stop).catch(() => undefined);
      workingSince = clock.monotonic();
    }
  }
}

function startOfSlice(at: number): number {
  return Math.floor(at / sliceMs) * sliceMs;
}

function startsOfHours(now: number): number[] {
  const current = Math.floor(now / hourMs) * hourMs;
  return Array.from({ length: hours }, (_, index) => current - (hours - 1 - index) * hourMs);
}

/** Uses local dates, because a day can have 23 or 25 hours. */
function startsOfDays(now: number): number[] {
  const today = new Date(now);
  const [year, month, day] = [today.getFullYear(), today.getMonth(), today.getDate()];
  return Array.from({ length: days }, (_, index) => new Date(year, month, day - (days - 1 - index)).getTime());
}

interface Period {
  from: number;
  until: number;
}

/** Returns all tallies in a period; `undefined` if any part of it has not been counted yet. */
function talliesIn(slices: Slices, { from, until }: Period): ChangeTally[] | undefined {
  const found: ChangeTally[] = [];
  for (let at = startOfSlice(from); at < until; at += sliceMs) {
    const tallies = slices.get(at);
    if (tallies === undefined) return undefined;
    found.push(...tallies);
  }
  return found;
}

function barOf(slices: Slices, period: Period): ChartBar {
  const { from } = period;
  const tallies = talliesIn(slices, period);
  if (tallies === undefined) return { from, promotions: null, demotions: null, refused: null, failed: null };
  const count = (counts: (tally: ChangeTally) => boolean) =>
    tallies.reduce((sum, tally) => sum + (counts(tally) ? tally.count : 0), 0);
  return {
    from,
    promotions: count(({ state, demotion, isQuiet }) => state === 'applied' && !demotion && !isQuiet),
    demotions: count(({ state, demotion, isQuiet }) => state === 'applied' && demotion && !isQuiet),
    refused: count(({ state }) => state === 'refused'),
    failed: count(({ state }) => state === 'failed'),
  };
}

function statesIn(slices: Slices, period: Period): Record<ChangeState, number> | undefined {
  const tallies = talliesIn(slices, period);
  if (tallies === undefined) return undefined;
  const counts = { pending: 0, applied: 0, refused: 0, failed: 0, unknown: 0 };
  for (const { state, count } of tallies) counts[state] += count;
  return counts;
}

function keysIn(slices: Slices, period: Period): ReadonlyMap<string, number> | undefined {
  const tallies = talliesIn(slices, period);
  if (tallies === undefined) return undefined;
  const counts = new Map<string, number>();
  for (const { keyId, count } of tallies) if (keyId !== undefined) counts.set(keyId, (counts.get(keyId) ?? 0) + count);
  return counts;
}

export function chartDocument({ hours, days, isComplete }: ChartView) {
  return { hours: hours.map(barDocument), days: days.map(barDocument), isComplete };
}

function barDocument({ from, ...counts }: ChartBar) {
  return { from: isoTime(from), ...counts };
}
