import { counted } from './text.ts';

const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
type Unit = keyof typeof unitMs;

export const durationPattern = /^(\d+)([smhd])$/;

/** Parses a duration such as `2s`, `5m`, `24h` or `90d` into milliseconds. Returns `undefined` for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit] = durationPattern.exec(text) ?? [];
  if (count === undefined || unit === undefined) return undefined;
  const ms = Number(count) * unitMs[unit as Unit];
  return Number.isSafeInteger(ms) ? ms : undefined;
}

/** Returns the duration as text for `parseDuration`, in the largest unit that divides it, e.g. `60h`. */
export function durationText(ms: number): string {
  const units: Unit[] = ['d', 'h', 'm'];
  const unit = units.find((one) => ms % unitMs[one] === 0) ?? 's';
  return `${ms / unitMs[unit]}${unit}`;
}

/** Uses the largest unit that gives at least 2, and rounds up, e.g. `7 days`, `36 hours` or `1 second`. */
export function inWords(ms: number): string {
  const [unit, unitOfMs] = wordUnits.find(([, each]) => ms >= 2 * each) ?? ['second', unitMs.s];
  return counted(Math.ceil(ms / unitOfMs), unit);
}

const wordUnits = [
  ['day', unitMs.d],
  ['hour', unitMs.h],
  ['minute', unitMs.m],
] as const;

export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

export function isoOrNull(epochMs: number | undefined): string | null {
  return epochMs === undefined ? null : isoTime(epochMs);
}

export function localTime(epochMs: number): string {
  const at = new Date(epochMs);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(twoDigits).join(':');
}

export function localDay(epochMs: number): string {
  const at = new Date(epochMs);
  return [at.getFullYear(), at.getMonth() + 1, at.getDate()].map(twoDigits).join('-');
}

function twoDigits(count: number): string {
  return String(count).padStart(2, '0');
}

export function isoDay(epochMs: number): string {
  return isoTime(epochMs).slice(0, 10);
}

/** Requires an offset after a time of day, which would otherwise depend on the machine's time zone. */
const momentPattern = /^(\d{4}-\d\d-(\d\d))([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

/**
 * Parses `2027-01-31` (midnight UTC) or `2027-01-31T18:00Z` to epoch milliseconds; returns `undefined` for anything
 * else, such as 30 February.
 */
export function parseMoment(text: string): number | undefined {
  const [, date = '', day] = momentPattern.exec(text) ?? [];
  const at = Date.parse(text);
  // `Date` reads 30 February as 2 March.
  const exists = !Number.isNaN(at) && new Date(date).getUTCDate() === Number(day);
  return exists ? at : undefined;
}

/**
 * Returns an exponential backoff: `firstMs` after the first attempt (`triesBefore` is 0), then twice as long after each
 * attempt, up to `maxMs`.
 */
export function exponentialBackOff(firstMs: number, maxMs: number): (triesBefore: number) => number {
  return (triesBefore) => Math.min(firstMs * 2 ** triesBefore, maxMs);
}

/**
 * Parses a `retry-after` header (RFC 9110, 10.2.3), which contains seconds or an HTTP date. Returns how long to wait,
 * in milliseconds: 0 for a date in the past, `undefined` if the header is absent or invalid.
 */
export function retryAfterMs(value: string | null | undefined, nowMs: number): number | undefined {
  const text = value?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  if (!/^[A-Z][a-z]{2,8}[, ]/.test(text)) return undefined;
  // The obsolete asctime format has no zone and means GMT, but Date.parse would read it as local time.
  const at = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}
