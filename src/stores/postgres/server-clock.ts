import type { Clock } from '../../base/clock.ts';

/** One look at the server's clock: when it was asked, on `Clock.monotonic()`, and what it said (epoch milliseconds). */
export interface TimeLook {
  askedAt: number;
  serverAt: number;
}

/** Clocks run apart by less than this between two looks: more is a jump. */
const maxDriftMs = 250;

/**
 * The clock of the server, by which all who share a database go, whatever their own clocks say. It is looked at with each new connection and
 * each beat; between two looks, the time of this process passes. Durations and waits are this process's own.
 */
export class ServerClock implements Clock {
  readonly #own: Clock;
  /** How far the server's clock is ahead of `monotonic()`, and how much of that may be the way of the answer. */
  #ahead: { ms: number; errorMs: number } | undefined;
  #jumpedAt: number | undefined;

  constructor(own: Clock) {
    this.#own = own;
  }

  /** Heeds an answer that has just come. */
  note({ askedAt, serverAt }: TimeLook): void {
    const now = this.#own.monotonic();
    const look = { ms: serverAt - (askedAt + now) / 2, errorMs: (now - askedAt) / 2 };
    const before = this.#ahead;
    const byMs = before === undefined ? 0 : Math.abs(look.ms - before.ms);
    const hasJumped = before !== undefined && byMs > look.errorMs + before.errorMs + maxDriftMs;
    if (hasJumped) this.#jumpedAt = now;
    if (before === undefined || hasJumped || byMs > look.errorMs) this.#ahead = look; // a slow answer says nothing new
  }

  now(): number {
    if (this.#ahead === undefined) return this.#own.now();
    return Math.floor(this.#own.monotonic() + this.#ahead.ms);
  }

  get jumpedAt(): number | undefined {
    return this.#jumpedAt;
  }

  monotonic(): number {
    return this.#own.monotonic();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#own.sleep(ms, signal);
  }
}

/** In SQL: the server's time, in epoch milliseconds. */
export const serverTime = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
