import type { Clock } from '../../src/ports/index.ts';

interface Sleeper {
  wakeAt: number;
  wake: () => void;
}

/**
 * Returns a clock that shows real time on an idle machine. On a busy one, while anything sleeps, it advances by at most
 * `longestTurnMs` per turn of the event loop, so that deadlines and waits end in the same order on every machine.
 */
export function pacedClock(longestTurnMs: number): Clock {
  const sleepers = new Set<Sleeper>();
  const startedAt = Date.now();
  let elapsedMs = 0;
  let lastTurnAt = performance.now();
  let turning: NodeJS.Timeout | undefined;
  const pass = (maxMs: number): number => {
    const turnAt = performance.now();
    elapsedMs += Math.min(maxMs, turnAt - lastTurnAt);
    lastTurnAt = turnAt;
    return elapsedMs;
  };
  const turn = () => {
    pass(longestTurnMs);
    for (const { wakeAt, wake } of sleepers) if (wakeAt <= elapsedMs) wake();
    if (sleepers.size > 0) return;
    clearInterval(turning);
    turning = undefined;
  };
  /**
   * Rounds down to 1/1024 ms, because such values add up exactly: after a skip of 5,000 ms, the clock never shows that
   * less has passed.
   */
  const monotonic = () => {
    const ms = turning === undefined ? pass(Number.POSITIVE_INFINITY) : elapsedMs;
    return Math.floor(ms * 1_024) / 1_024;
  };
  return {
    now: () => startedAt + Math.floor(monotonic()),
    monotonic,
    async sleep(ms, signal) {
      signal?.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const sleeper = { wakeAt: monotonic() + ms, wake: resolve };
      const abort = () => reject(signal?.reason);
      sleepers.add(sleeper);
      turning ??= setInterval(turn, 1).unref();
      signal?.addEventListener('abort', abort);
      try {
        await promise;
      } finally {
        sleepers.delete(sleeper);
        signal?.removeEventListener('abort', abort);
      }
    },
  };
}

/** The clock for tests whose shortest timeouts are a few hundred milliseconds. */
export const pacedTime = pacedClock(6);

/** Sleeps of at least this length, such as a worker's between two rounds, end only when a test skips them. */
const longSleepMs = 2_000;

/** A clock for tests with real sockets: short waits take paced time; long ones end only when a test skips them. */
export class SkippableClock implements Clock {
  #skippedMs = 0;
  readonly #sleepers = new Set<Sleeper>();

  now(): number {
    return pacedTime.now() + this.#skippedMs;
  }

  monotonic(): number {
    return pacedTime.monotonic() + this.#skippedMs;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms < longSleepMs) return pacedTime.sleep(ms, signal);
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const sleeper = { wakeAt: this.monotonic() + ms, wake: resolve };
    const abort = () => reject(signal?.reason);
    this.#sleepers.add(sleeper);
    signal?.addEventListener('abort', abort);
    try {
      await promise;
    } finally {
      this.#sleepers.delete(sleeper);
      signal?.removeEventListener('abort', abort);
    }
  }

  /**
   * Moves time forward immediately. Ends the long sleeps that are now due, but no short ones, because these take paced
   * time.
   */
  skip(ms: number): void {
    this.#skippedMs += ms;
    for (const { wakeAt, wake } of this.#sleepers) if (wakeAt <= this.monotonic()) wake();
  }
}
