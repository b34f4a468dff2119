const minute = 60_000;
const hour = 60 * minute;

/** How long to wait after each try that failed. */
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

/** An event is tried so often before later ones go ahead of it. */
export const triesInPlace = 3;

/** The maximum number of tries if the target responds to other events. */
export const maxTries = waitsMs.length + 1;

/** A target that stayed dead for so long, over so many tries, is disabled. */
export const deadAfterMs = 5 * 24 * hour;
export const deadAfterTries = 10;

/** Older events are not delivered any more. */
export const maxAgeMs = 7 * 24 * hour;

/** A target may ask for a wait of at most so long. */
export const maxRetryAfterMs = 24 * hour;

/** When to try again after so many failures. `random`: 0 to 1, so that many targets do not come back at one moment. */
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

/** How long events are gathered for a channel for people, after this many digests that followed each other without a quiet time. */
export interface Gathering {
  ms: number;
  digests: number;
}

/** At most this many events at once are an embed each; more are a digest. */
export const maxEmbeds = 5;

/**
 * A single event arrives within a moment. After a message, rankd gathers for 10 s, so that a list of changes does not bury the channel;
 * while one digest follows another, for a minute. `last`: how long ago the last message was, and how many digests it ended.
 */
export function gatheringAfter(last: { agoMs: number; digests: number } | undefined): Gathering {
  if (last === undefined || last.agoMs >= 10_000) return { ms: 1_000, digests: 0 };
  return { ms: isBurst(last) ? 60_000 : 10_000, digests: last.digests };
}

export function isBurst({ digests }: Pick<Gathering, 'digests'>): boolean {
  return digests >= 2;
}
