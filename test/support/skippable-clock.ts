import type { Clock } from '../../src/ports/index.ts';
import { patientTime } from './patient-time.ts';

/** Sleeps of a worker between two rounds: they end when a test skips them. */
const longSleepMs = 2_000;

interface Sleeper {
  wakeAt: number;
  wake: () => void;
}

/** Patient time for what is short, so that real sockets can be used; what is long passes only when a test skips it. */
export class SkippableClock implements Clock {
  #skippedMs = 0;
  readonly #sleepers = new Set<Sleeper>();

  now(): number {
    return patientTime.now() + this.#skippedMs;
  }

  monotonic(): number {
    return patientTime.monotonic() + this.#skippedMs;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms < longSleepMs) return patientTime.sleep(ms, signal);
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
