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

/** So often at all, if the target answers meanwhile. */
export const maxTries = waitsMs.length + 1;

/** A target that stayed dead for so long, over so many tries, is disabled. */
export const deadAfterMs = 5 * 24 * hour;
export const deadAfterTries = 10;

/** What is older is not delivered any more. */
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

/** What was last sent to a channel for people: how long ago, and how many events it told. */
export interface LastSent {
  agoMs: number;
  events: number;
}

/** So many events at once are an embed each; more are a digest. */
export const maxEmbeds = 5;

/**
 * For how long events are gathered before they are sent to a channel for people. An event that comes alone is told within a moment, but a
 * message every second would bury the channel while many members are changed. `isBurst`: a digest was sent just before.
 */
export function gatheringAfter(last: LastSent | undefined): { ms: number; isBurst: boolean } {
  if (last === undefined || last.agoMs >= quietAfterMs) return { ms: 1_000, isBurst: false };
  return last.events > maxEmbeds ? { ms: 60_000, isBurst: true } : { ms: 10_000, isBurst: false };
}

const quietAfterMs = 10_000;
