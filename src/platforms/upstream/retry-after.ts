import { retryAfterMs } from '../../base/retry-after.ts';

/** rankd never waits longer than this, whatever the platform asks for: one wrong header must not stop an operation for a day. */
export const maxWaitMs = 600_000;
/** No limit above this is believed, as rankd keeps a record of each call in a window. */
const maxCalls = 10_000;

/** What the platform says about its budget in the headers of one answer. */
export interface RateReading {
  /** Calls per window. */
  limit?: number | undefined;
  windowMs?: number | undefined;
  /** Calls left in the current window. */
  remaining?: number | undefined;
  /** Until the current window ends. */
  resetMs?: number | undefined;
}

/** The wait in milliseconds that a `retry-after` header asks for, at most `maxWaitMs`; as `retryAfterMs`. */
export function parseRetryAfter(value: string | null, nowMs: number): number | undefined {
  const ms = retryAfterMs(value, nowMs);
  return ms === undefined ? undefined : Math.min(maxWaitMs, ms);
}

/**
 * Reads `x-ratelimit-limit`, `-remaining` and `-reset`. The limit comes as `300, 300;w=60`: the limit that applies now, then
 * the policies with their windows in seconds. The reset is in seconds from now. Source: Open Cloud's page on rate limits.
 */
export function parseRateLimit(headers: Pick<Headers, 'get'>): RateReading {
  const [current, ...policies] = (headers.get('x-ratelimit-limit') ?? '').split(',');
  const limit = positive(current);
  const policy = policies.map((text) => text.split(';')).find(([quota]) => positive(quota) === limit);
  const windowSeconds = positive(policy?.find((part) => /^\s*w\s*=/.test(part))?.split('=')[1]);
  const resetSeconds = whole(headers.get('x-ratelimit-reset'));
  return {
    limit: limit === undefined ? undefined : Math.min(limit, maxCalls),
    windowMs: windowSeconds === undefined ? undefined : Math.min(windowSeconds * 1000, maxWaitMs),
    remaining: whole(headers.get('x-ratelimit-remaining')),
    resetMs: resetSeconds === undefined ? undefined : resetSeconds * 1000,
  };
}

function positive(text: string | null | undefined): number | undefined {
  const value = whole(text);
  return value === 0 ? undefined : value;
}

function whole(text: string | null | undefined): number | undefined {
  const trimmed = text?.trim() ?? '';
  return /^\d{1,15}$/.test(trimmed) ? Number(trimmed) : undefined;
}
