import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../../src/ports/index.ts';
import '../../src/webhooks/http-sender.ts'; // loaded now, because a manual clock does not wait for rankd to load it

interface Sleeper {
  wakeAt: number;
  wake: () => void;
}

/** A clock that moves only when a test moves it. */
export class ManualClock implements Clock {
  #nowMs: number;
  #elapsedMs = 0;
  readonly #sleepers = new Set<Sleeper>();

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startMs;
  }

  now(): number {
    return Math.floor(this.#nowMs);
  }

  monotonic(): number {
    return this.#elapsedMs;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const sleeper = { wakeAt: this.#elapsedMs + ms, wake: resolve };
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
   * Moves time forward step by step: wakes the sleepers in order, together if they are due at the same time, and waits
   * until their work is done before the next step.
   */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsedMs + ms;
    for (await settle(); (this.#next?.wakeAt ?? Number.POSITIVE_INFINITY) <= end; await settle()) this.#wakeNext();
    this.#move(end - this.#elapsedMs);
    await settle();
  }

  /** Moves time forward in one step, as if the process had been suspended: every due sleeper wakes once. */
  async skip(ms: number): Promise<void> {
    this.#move(ms);
    await this.advance(0);
  }

  /**
   * Moves time forward until `done` settles. Whenever the process is idle, the clock jumps to the time at which the
   * next sleeper is due.
   */
  async passUntil<T>(done: Promise<T>): Promise<T> {
    let isDone = false;
    const end = () => {
      isDone = true;
    };
    done.then(end, end);
    let waits = 0;
    for (await settle(); !isDone; await settle()) {
      waits = this.#next === undefined ? waits + 1 : 0;
      if (waits === 0 || waits > 400) this.#wakeNext();
      else await delay(5); // a busy machine responds late
    }
    return done;
  }

  /** Sets only the wall clock, as an administrator or NTP would; durations are unaffected. */
  setWallClock(nowMs: number): void {
    this.#nowMs = nowMs;
  }

  get #next(): Sleeper | undefined {
    let first: Sleeper | undefined;
    for (const sleeper of this.#sleepers) if (first === undefined || sleeper.wakeAt < first.wakeAt) first = sleeper;
    return first;
  }

  #wakeNext(): void {
    const next = this.#next;
    if (next === undefined) throw new Error('no sleeper is left, so the awaited promise will never settle');
    this.#move(Math.max(0, next.wakeAt - this.#elapsedMs));
    const due = [...this.#sleepers].filter(({ wakeAt }) => wakeAt <= this.#elapsedMs);
    for (const sleeper of due.sort((a, b) => a.wakeAt - b.wakeAt)) {
      this.#sleepers.delete(sleeper);
      sleeper.wake();
    }
  }

  #move(ms: number): void {
    this.#elapsedMs += ms;
    this.#nowMs += ms;
  }
}

/** The process counts as idle after this many turns of the event loop without an event. */
const quietTurns = 10;
/** These turns must take at least this long, because the kernel needs time to deliver sent data. */
const quietMs = 0.3;
const settling = new Set<{ since: number; resolve: () => void }>();
let turn = 0;
let busyTurn = 0;
let busyAt = 0;
let seenEvents = -1;
let isOtherAwaited = () => false;

/** Makes all manual clocks wait while `isAwaited` returns true. */
export function waitAlsoFor(isAwaited: () => boolean): void {
  isOtherAwaited = isAwaited;
}

/** Waits until this process is idle. Concurrent tests share one watcher. */
function settle(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (settling.size === 0) setImmediate(watchTurn);
  settling.add({ since: turn, resolve });
  return promise;
}

function watchTurn(): void {
  turn += 1;
  const { events } = performance.nodeTiming.uvMetricsInfo;
  const now = performance.now();
  if (events !== seenEvents) [busyTurn, busyAt] = [turn, now];
  seenEvents = events;
  const isQuietFor = (since: number) => turn - Math.max(since, busyTurn) >= quietTurns && now - busyAt >= quietMs;
  const isWaiting = [...settling].some(({ since }) => isQuietFor(since)) && (isOtherAwaited() || isFileAwaited());
  if (isWaiting) [busyTurn, busyAt] = [turn, now];
  for (const one of settling) {
    if (!isQuietFor(one.since)) continue;
    settling.delete(one);
    one.resolve();
  }
  if (settling.size > 0) setImmediate(watchTurn);
}

/**
 * True if a file operation or a worker's response is pending. Call it rarely, because it lists all open resources of
 * Node.js.
 */
function isFileAwaited(): boolean {
  return process.getActiveResourcesInfo().some((name) => name === 'FSReqCallback' || name === 'MessagePort');
}
