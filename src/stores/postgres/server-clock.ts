import type { Clock } from '../../base/clock.ts';

/** A reading of the server's clock in epoch milliseconds, and the time on `Clock.monotonic()` when it was requested. */
export interface ClockReading {
  askedAt: number;
  serverAt: number;
}

/** Clocks drift apart by less than this between two readings; a larger difference means that a clock has jumped. */
const maxDriftMs = 250;

/**
 * The database server's clock, which all daemons that share a database use instead of their own. Each new connection
 * and heartbeat reads it. Between readings, it advances with this process's monotonic clock, which also measures
 * durations and waits.
 */
export class ServerClock implements Clock {
  readonly #ownClock: Clock;
  /** The offset of the server's clock from `monotonic()`, and its maximum error due to network delay. */
  #ahead: { ms: number; errorMs: number } | undefined;
  #jumpedAt: number | undefined;

  constructor(own: Clock) {
    this.#ownClock = own;
  }

  /**
   * Records a reading. Call it as soon as the response has been received, because it estimates the network delay from
   * the current time.
   */
  note({ askedAt, serverAt }: ClockReading): void {
    const now = this.#ownClock.monotonic();
    const reading = { ms: serverAt - (askedAt + now) / 2, errorMs: (now - askedAt) / 2 };
    const before = this.#ahead;
    const byMs = before === undefined ? 0 : Math.abs(reading.ms - before.ms);
    const hasJumped = before !== undefined && byMs > reading.errorMs + before.errorMs + maxDriftMs;
    if (hasJumped) this.#jumpedAt = now;
    // Ignores a reading that differs from the stored one by no more than its own error.
    if (before === undefined || hasJumped || byMs > reading.errorMs) this.#ahead = reading;
  }

  now(): number {
    if (this.#ahead === undefined) return this.#ownClock.now();
    return Math.floor(this.#ownClock.monotonic() + this.#ahead.ms);
  }

  get jumpedAt(): number | undefined {
    return this.#jumpedAt;
  }

  monotonic(): number {
    return this.#ownClock.monotonic();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#ownClock.sleep(ms, signal);
  }
}

/** SQL for the server's time, in epoch milliseconds. */
export const serverTime = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
