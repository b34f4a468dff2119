/** How many calls each lane has asked for, in two stretches of a window's length. */
export interface ShareCounts {
  current: Record<string, number>;
  previous: Record<string, number>;
  /** When the current stretch began; absent before the first call. */
  beganAt?: number;
}

interface Call {
  lane: string;
  now: number;
  windowMs: number;
}

/**
 * Counts one more call of the lane. Returns true if the lane is heavy with it. A lane is heavy with more than its fair share of a
 * window's slots, where one share is kept for a lane that may still come. It is served after the others. Refused calls count too:
 * or else a lane that goes on asking for too much would be light again later in the window, and pass those it was refused before.
 */
export function isHeavyWith(counts: ShareCounts, { limit, ...call }: Call & { limit: number }): boolean {
  const calls = countCall(counts, call);
  const lanes = new Set([...Object.keys(counts.current), ...Object.keys(counts.previous)]).size;
  return calls > limit / (lanes + 1);
}

/** Counts one more call of the lane. Returns how many it has asked for over about the last window. */
export function countCall(counts: ShareCounts, { lane, now, windowMs }: Call): number {
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

/** How many calls the lane has asked for over about the last window. */
export function callsOf(counts: ShareCounts, lane: string, { now, windowMs }: Omit<Call, 'lane'>): number {
  const passed = (now - (counts.beganAt ?? now)) / windowMs;
  const since = (calls: number | undefined, until: number) => (calls ?? 0) * Math.min(1, Math.max(0, until - passed));
  return since(counts.current[lane], 2) + since(counts.previous[lane], 1);
}
