import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../../src/ports/index.ts';

interface Sleeper {
  wakeAt: number;
  wake: () => void;
}

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #nowMs: number;
  #elapsedMs = 0;
  #sleepers: Sleeper[] = [];

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startMs;
  }

  now(): number {
    return Math.floor(this.#nowMs);
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
    for (await settle(); (this.#next?.wakeAt ?? Number.POSITIVE_INFINITY) <= end; await settle()) this.#wakeNext();
    this.#move(end - this.#elapsedMs);
    await settle();
  }

  /** Moves time forward at once, as if nothing had run meanwhile: who sleeps wakes once. */
  async skip(ms: number): Promise<void> {
    this.#move(ms);
    await this.advance(0);
  }

  /** Lets time pass until `done` settles, to whatever is due next each time that nothing is left to be done before. */
  async passUntil<T>(done: Promise<T>): Promise<T> {
    let isDone = false;
    const end = () => {
      isDone = true;
    };
    done.then(end, end);
    for (await settle(); !isDone; await settle()) {
      for (let waits = 0; waits < 400 && this.#next === undefined && !isDone; waits += 1) await delay(5); // a busy machine answers late
      if (!isDone) this.#wakeNext();
    }
    return done;
  }

  /** Sets the wall clock alone, as an administrator or NTP would; durations are unaffected. */
  setWallClock(nowMs: number): void {
    this.#nowMs = nowMs;
  }

  get #next(): Sleeper | undefined {
    return this.#sleepers.toSorted((a, b) => a.wakeAt - b.wakeAt)[0];
  }

  #wakeNext(): void {
    const next = this.#next;
    if (next === undefined) throw new Error('nobody sleeps: what is waited for will never come');
    this.#sleepers = this.#sleepers.filter((other) => other !== next);
    this.#move(Math.max(0, next.wakeAt - this.#elapsedMs));
    next.wake();
  }

  #move(ms: number): void {
    this.#elapsedMs += ms;
    this.#nowMs += ms;
  }
}

/** Waits until this process has nothing left to do: for ten turns of the event loop, no event came and no file was waited for. */
async function settle(): Promise<void> {
  let seen = -1;
  for (let quietTurns = 0; quietTurns < 10; quietTurns += 1) {
    const { events } = performance.nodeTiming.uvMetricsInfo;
    if (events !== seen || process.getActiveResourcesInfo().includes('FSReqCallback')) quietTurns = 0;
    seen = events;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
