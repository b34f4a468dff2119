import { retryAfterMs } from '../../base/time.ts';

export interface Answer {
  status: number;
  headers: Headers;
  /** `undefined` if it could not be read: it was cut off, arrived too late, or is longer than allowed. */
  body: string | undefined;
}

/**
 * Sends a request and reads the response. A body longer than `maxBodyBytes` counts as unreadable. Throws if there is no
 * response, or if a successful response is a web page, such as a network's login page.
 */
export async function fetchAnswer(
  fetch: typeof globalThis.fetch,
  url: string,
  init: RequestInit,
  maxBodyBytes: number,
): Promise<Answer> {
  const { ok, status, headers, body } = await fetch(url, init);
  if (ok && /^text\/html\b/i.test(headers.get('content-type') ?? '')) {
    await body?.cancel();
    throw new Error('a web page instead of JSON');
  }
  const text = body === null ? '' : await readText(body, maxBodyBytes).catch(() => undefined);
  return { status, headers, body: text };
}

/** Reads a body as UTF-8. Throws if it is longer than `maxBodyBytes`, which also cancels the rest of the download. */
export async function readText(body: AsyncIterable<Uint8Array>, maxBodyBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > maxBodyBytes) throw new Error(`the response is longer than ${maxBodyBytes} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/**
 * rankd never waits longer than this, whatever the platform requests, because one wrong header must not stop an
 * operation for a day.
 */
export const maxWaitMs = 600_000;
/** Caps the reported limit, because each call in a window takes memory. */
const maxCalls = 10_000;

export interface RateReading {
  /** Calls per window. */
  limit?: number | undefined;
  windowMs?: number | undefined;
  /** Calls left in the current window. */
  remaining?: number | undefined;
  resetMs?: number | undefined;
}

export function parseRetryAfter(value: string | null, nowMs: number): number | undefined {
  const ms = retryAfterMs(value, nowMs);
  return ms === undefined ? undefined : Math.min(maxWaitMs, ms);
}

/**
 * Reads `x-ratelimit-limit`, `-remaining` and `-reset`. The limit has the form `300, 300;w=60`: the limit that applies
 * now, then the policies with their windows in seconds. The reset is in seconds from now. Source: Open Cloud's page on
 * rate limits.
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

/**
 * Returns a function that masks `key` (printable ASCII) in any string, even if some of the key's characters are
 * JSON-escaped. The string can't be parsed first, because errors and log lines often quote truncated JSON.
 */
export function keyMask(key: string): (text: string) => string {
  const characters = Array.from(key, (one) => {
    const hex = one.charCodeAt(0).toString(16);
    return `(?:\\\\?\\x${hex}|\\\\u00${hex})`;
  });
  const written = new RegExp(characters.join(''), 'gi');
  return (text) => text.replaceAll(written, '[key]');
}
