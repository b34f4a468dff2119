const minute = 60_000;
const hour = 60 * minute;

/** The wait after each failed try. */
const waitsMs = [
  5_000,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
] as const;

/** After this many tries of an event, later ones overtake it. */
export const triesInPlace = 3;

/** The maximum number of tries if the target responds to other events. */
export const maxTries = waitsMs.length + 1;

/** A target that stays dead for this long, over this many tries, is disabled. */
export const deadAfterMs = 5 * 24 * hour;
export const deadAfterTries = 10;

/** Older events are not delivered any more. */
export const maxAgeMs = 7 * 24 * hour;

/** The longest wait that a target may ask for. */
export const maxRetryAfterMs = 24 * hour;

/**
 * The time of the next try after this many failures. `random`: 0 to 1, so that many targets do not come back at the
 * same time.
 */
export function nextTryAt({
  failures,
  now,
  random,
  retryAfterMs = 0,
}: {
  failures: number;
  now: number;
  random: number;
  retryAfterMs?: number | undefined;
}): number {
  const waitMs = waitsMs[Math.min(failures, waitsMs.length) - 1] ?? 0;
  return now + Math.max(Math.round(waitMs * (0.8 + 0.4 * random)), Math.min(retryAfterMs, maxRetryAfterMs));
}

/** The time for which events are gathered for a channel, after this many consecutive digests. */
export interface Gathering {
  ms: number;
  digests: number;
}

/** At most this many events at once are an embed each; more are a digest. */
export const maxEmbeds = 5;

/**
 * A single event arrives within a moment. After a message, rankd gathers for 10 s, so that a list of changes does not
 * flood the channel; during a series of digests, for a minute. `last`: the age of the last message, and the length of
 * its series.
 */
export function gatheringAfter(last: { agoMs: number; digests: number } | undefined): Gathering {
  if (last === undefined || last.agoMs >= 10_000) return { ms: 1_000, digests: 0 };
  return { ms: isBurst(last) ? 60_000 : 10_000, digests: last.digests };
}

export function isBurst({ digests }: Pick<Gathering, 'digests'>): boolean {
  return digests >= 2;
}
