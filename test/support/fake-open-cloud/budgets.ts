import { v2Error } from './answers.ts';
import type { Operation } from './journal.ts';

/** The key owner's limit for each operation, in calls per window. An operation without an entry has no limit. */
export type Limits = Partial<Record<Operation, number>>;

export const documentedLimits: Limits = {
  group: 150,
  roles: 300,
  role: 300,
  memberships: 300,
  assign: 300,
  unassign: 300,
  user: 1000,
};

/** Counts each operation's calls in windows of `windowMs`. The first call after a window ends begins the next one. */
export class Budgets {
  limits: Limits;
  windowMs: number;
  sendsRetryAfter = true;
  sendsHeaders = true;
  /** A second limit for each operation in `limits`, which no header reports: `burst` at once, then `perSecond`. */
  hidden: { burst: number; perSecond: number } | undefined;
  readonly #now: () => number;
  readonly #buckets = new Map<Operation, { left: number; at: number }>();
  readonly #windows = new Map<Operation, { endsAt: number; used: number }>();

  constructor({ limits, windowMs, now }: { limits: Limits; windowMs: number; now: () => number }) {
    this.limits = limits;
    this.windowMs = windowMs;
    this.#now = now;
  }

  /** Uses up calls, as another program with a key of the same owner would. */
  use(operation: Operation, calls: number): void {
    this.#window(operation).used += calls;
  }

  /** Counts a call and returns the headers for its response. Throws a 429 response if a limit is exceeded. */
  charge(operation: Operation): Record<string, string> {
    const limit = this.limits[operation];
    if (limit === undefined) return {};
    const window = this.#window(operation);
    const isOver = window.used >= limit;
    if (!isOver) window.used += 1;
    const resetSeconds = Math.max(0, Math.ceil((window.endsAt - this.#now()) / 1000));
    const headers: Record<string, string> = {};
    if (this.sendsHeaders) {
      headers['x-ratelimit-limit'] = `${limit}, ${limit};w=${Math.ceil(this.windowMs / 1000)}`;
      headers['x-ratelimit-remaining'] = String(Math.max(0, limit - window.used));
      headers['x-ratelimit-reset'] = String(resetSeconds);
    }
    if (!isOver) {
      if (this.#isWithinHidden(operation)) return headers;
      throw v2Error(429, 'RESOURCE_EXHAUSTED', 'Too many requests.', headers);
    }
    if (this.sendsRetryAfter) headers['retry-after'] = String(resetSeconds);
    throw v2Error(429, 'RESOURCE_EXHAUSTED', 'Too many requests.', headers);
  }

  #isWithinHidden(operation: Operation): boolean {
    if (this.hidden === undefined) return true;
    const { burst, perSecond } = this.hidden;
    const now = this.#now();
    const { left, at } = this.#buckets.get(operation) ?? { left: burst, at: now };
    const filled = Math.min(burst, left + ((now - at) / 1_000) * perSecond);
    const isWithin = filled >= 1;
    this.#buckets.set(operation, { left: isWithin ? filled - 1 : filled, at: now });
    return isWithin;
  }

  #window(operation: Operation): { endsAt: number; used: number } {
    const current = this.#windows.get(operation);
    if (current !== undefined && this.#now() < current.endsAt) return current;
    const fresh = { endsAt: this.#now() + this.windowMs, used: 0 };
    this.#windows.set(operation, fresh);
    return fresh;
  }
}
