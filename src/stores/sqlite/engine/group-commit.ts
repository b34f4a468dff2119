import { setImmediate as endOfTurn } from 'node:timers/promises';
import { systemClock } from '../../../base/clock.ts';
import { retryEveryMs } from './lock-retry.ts';
import { isLocked } from './sqlite-error.ts';

interface Options {
  /** Runs `work` in a transaction. Throws what `work` throws, and does not wait if another process holds the lock. */
  commit: <T>(work: () => T) => T;
  /** Resolves once everything that was committed is on the disk. */
  sync: () => Promise<void>;
  /** How long a write waits for another process's lock, in milliseconds. */
  lockTimeoutMs: number;
}

interface Entry {
  work: () => unknown;
  /** When it stops waiting for another process's lock, on `Clock.monotonic()`. */
  giveUpAt: number;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

type Settled = { value: unknown } | { error: unknown };

/**
 * Group commit: the writes of one turn of the event loop share a transaction and a wait for the disk, and so do those that come
 * during that wait. Each write is kept as a whole or not at all, whatever becomes of the others. The thread is free while the
 * disk or another process's lock is waited for; only SQLite's checkpoints, one in many commits, block it.
 */
export class GroupCommit {
  readonly #options: Options;
  #waiting: Entry[] = [];
  #isRunning = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /**
   * Resolves with what `work` returned, once its commit is on the disk; rejects with what it threw. `work` may be run more than once,
   * of which the last run counts, so it must do nothing but read and write the database, and must not return a promise.
   */
  add<T>(work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const giveUpAt = systemClock.monotonic() + this.#options.lockTimeoutMs; // a test's clock does not move other processes
      this.#waiting.push({ work, giveUpAt, resolve: resolve as (value: unknown) => void, reject });
      if (!this.#isRunning) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0) {
      await endOfTurn();
      const batch = this.#waiting;
      this.#waiting = [];
      const now = systemClock.monotonic();
      const settled = await this.#onDisk(this.#tryAll(batch));
      const kept = batch.filter((entry, index) => !settle(entry, settled[index], now));
      this.#waiting.unshift(...kept);
      if (kept.length > 0) await systemClock.sleep(retryEveryMs);
    }
    this.#isRunning = false;
  }

  /** If the disk fails, so does every write of the batch: none of them may be acknowledged. */
  async #onDisk(settled: Settled[]): Promise<Settled[]> {
    if (settled.every(isError)) return settled;
    try {
      await this.#options.sync();
      return settled;
    } catch (error) {
      return settled.map((one) => (isError(one) ? one : { error }));
    }
  }

  /** All of them in one transaction. If one fails, which is rare, each is run again in a transaction of its own. */
  #tryAll(batch: Entry[]): Settled[] {
    const { commit } = this.#options;
    try {
      return commit(() => batch.map(({ work }) => ({ value: runSync(work) })));
    } catch (error) {
      if (isLocked(error) || batch.length === 1) return batch.map(() => ({ error }));
      return batch.map(({ work }) => attempt(() => commit(() => runSync(work))));
    }
  }
}

/** Returns false if the write met a lock and has time left: then it is to be tried again. */
function settle({ resolve, reject, giveUpAt }: Entry, settled: Settled | undefined, now: number): boolean {
  if (settled === undefined || (isError(settled) && isLocked(settled.error) && now < giveUpAt)) return false;
  if (isError(settled)) reject(settled.error);
  else resolve(settled.value);
  return true;
}

function isError(settled: Settled): settled is { error: unknown } {
  return 'error' in settled;
}

/** Returns the result of `work`. A promise is refused: its continuation would run after the commit. */
function runSync(work: () => unknown): unknown {
  const value = work();
  if (value instanceof Promise) throw new TypeError('what is committed cannot wait for anything');
  return value;
}

function attempt(work: () => unknown): Settled {
  try {
    return { value: work() };
  } catch (error) {
    return { error };
  }
}
