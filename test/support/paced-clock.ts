import type { Clock } from '../../src/ports/index.ts';

interface Sleeper {
  wakeAt: number;
  wake: () => void;
}

/**
 * Real time on a machine that is idle; on a busy one it passes, while somebody waits, only as fast as this process gets to run: by at
 * most `longestTurnMs` in a turn of the event loop, which without others to wait for takes less. Deadlines, waits and a fake that go by
 * it meet in the same order on every machine.
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
  const monotonic = () => (turning === undefined ? pass(Number.POSITIVE_INFINITY) : elapsedMs);
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

/** For tests whose shortest time-outs are some hundred milliseconds. */
export const pacedTime = pacedClock(6);

/** Sleeps of a worker between two rounds: they end when a test skips them. */
const longSleepMs = 2_000;

/** The paced time for what is short, so that real sockets can be used; what is long passes only when a test skips it. */
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

  /** So much time has passed at once. */
  skip(ms: number): void {
    this.#skippedMs += ms;
    for (const { wakeAt, wake } of this.#sleepers) if (wakeAt <= this.monotonic()) wake();
  }
}
