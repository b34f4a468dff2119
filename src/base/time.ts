import { counted } from './text.ts';

const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
type Unit = keyof typeof unitMs;

/** A whole number and one of s, m, h, d: the form of every duration in settings and flags. */
export const durationPattern = /^(\d+)([smhd])$/;

/** `2s`, `5m`, `24h` or `90d` in milliseconds; `undefined` for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit] = durationPattern.exec(text) ?? [];
  if (count === undefined || unit === undefined) return undefined;
  const ms = Number(count) * unitMs[unit as Unit];
  return Number.isSafeInteger(ms) ? ms : undefined;
}

/** A duration in the largest unit of which it has at least two, rounded up, e.g. `7 days`, `36 hours` or `1 second`. */
export function inWords(ms: number): string {
  const [unit, unitOfMs] = wordUnits.find(([, each]) => ms >= 2 * each) ?? ['second', unitMs.s];
  return counted(Math.ceil(ms / unitOfMs), unit);
}

const wordUnits = [
  ['day', unitMs.d],
  ['hour', unitMs.h],
  ['minute', unitMs.m],
] as const;

/** Epoch milliseconds as ISO 8601. */
export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

/** The same; null if there is no such time. */
export function isoOrNull(epochMs: number | undefined): string | null {
  return epochMs === undefined ? null : isoTime(epochMs);
}

/** The time of day on this machine, e.g. `14:02:11`. */
export function localTime(epochMs: number): string {
  const at = new Date(epochMs);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(twoDigits).join(':');
}

/** The day on this machine, e.g. `2026-05-01`. */
export function localDay(epochMs: number): string {
  const at = new Date(epochMs);
  return [at.getFullYear(), at.getMonth() + 1, at.getDate()].map(twoDigits).join('-');
}

function twoDigits(count: number): string {
  return String(count).padStart(2, '0');
}

/** The day of it, e.g. `2026-05-01`, in UTC. */
export function isoDay(epochMs: number): string {
  return isoTime(epochMs).slice(0, 10);
}

/** A date, or a time in UTC or with an offset. Without an offset, a time would differ between machines. */
const momentPattern = /^(\d{4}-\d\d-(\d\d))([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

/**
 * `2027-01-31` (its start in UTC) or `2027-01-31T18:00Z` in epoch milliseconds; `undefined` for anything else, such as
 * 30 February.
 */
export function parseMoment(text: string): number | undefined {
  const [, date = '', day] = momentPattern.exec(text) ?? [];
  const at = Date.parse(text);
  // `Date` reads 30 February as 2 March.
  const exists = !Number.isNaN(at) && new Date(date).getUTCDate() === Number(day);
  return exists ? at : undefined;
}

/**
 * Exponential backoff: `firstMs` after the first try (0), twice that after the second, and never more than `longestMs`.
 */
export function doubling(firstMs: number, longestMs: number): (triesBefore: number) => number {
  return (triesBefore) => Math.min(firstMs * 2 ** triesBefore, longestMs);
}

/**
 * The wait in milliseconds that a `retry-after` header requests. The header holds seconds or an HTTP date (RFC 9110,
 * 10.2.3); a date in the past gives 0. `undefined` if the header is absent or invalid.
 */
export function retryAfterMs(value: string | null | undefined, nowMs: number): number | undefined {
  const text = value?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  if (!/^[A-Z][a-z]{2,8}[, ]/.test(text)) return undefined;
  // The oldest form of a date (asctime) has no zone and means GMT, but Date.parse would read it as local time.
  const at = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}
