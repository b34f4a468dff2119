import type { Clock } from '../../src/ports/index.ts';

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #nowMs: number;
  #elapsedMs = 0;
  #sleepers: Array<{ wakeAt: number; wake: () => void }> = [];

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  monotonic(): number {
    return this.#elapsedMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const sleeper = { wakeAt: this.#elapsedMs + ms, wake: resolve };
      this.#sleepers.push(sleeper);
      signal?.addEventListener('abort', () => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        reject(signal.reason);
      });
    });
  }

  /** Moves time forward step by step, waking sleepers in order and letting what they do run before the next one wakes. */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsedMs + ms;
    for (;;) {
      await settle();
      const next = this.#sleepers.filter(({ wakeAt }) => wakeAt <= end).sort((a, b) => a.wakeAt - b.wakeAt)[0];
      if (next === undefined) break;
      this.#sleepers = this.#sleepers.filter((other) => other !== next);
      this.#move(Math.max(0, next.wakeAt - this.#elapsedMs));
      next.wake();
    }
    this.#move(end - this.#elapsedMs);
    await settle();
  }

  /** Sets the wall clock alone, as an administrator or NTP would; durations are unaffected. */
  setWallClock(nowMs: number): void {
    this.#nowMs = nowMs;
  }

  #move(ms: number): void {
    this.#elapsedMs += ms;
    this.#nowMs += ms;
  }
}

/** Lets pending promise callbacks and I/O callbacks of this turn run. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
