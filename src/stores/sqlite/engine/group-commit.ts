import { setImmediate as endOfTurn } from 'node:timers/promises';
import { systemClock } from '../../../base/clock.ts';
import { isLocked } from './sqlite-error.ts';

interface Options {
  /** Runs `work` in a transaction. Throws what `work` throws, and at once where another process holds the lock. */
  commit: <T>(work: () => T) => T;
  /** Resolves once all that was committed is on the disk. */
  sync: () => Promise<void>;
  /** How long a piece waits for another process's lock, in milliseconds. */
  lockTimeoutMs: number;
}

interface Entry {
  work: () => unknown;
  /** On `Clock.monotonic()`: how long it waits for another process's lock. */
  giveUpAt: number;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

type Settled = { value: unknown } | { error: unknown };

/** How long to wait before another process's lock is looked at again, in milliseconds. */
export const retryEveryMs = 15;

/**
 * Commits together what is written in one turn of the event loop, and what comes while the disk is waited for. Each piece is all
 * there or not at all, whatever becomes of the others. While the disk or another process's lock is waited for, the
 * thread goes on; only the log's checkpoints, one in many commits, hold it.
 */
export class WriteQueue {
  readonly #options: Options;
  #waiting: Entry[] = [];
  #isUnderWay = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Resolves with what `work` returned once that is on the disk. `work` may be run again, up to the time that counts. */
  add<T>(work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const giveUpAt = systemClock.monotonic() + this.#options.lockTimeoutMs; // other processes do not live by a test's clock
      this.#waiting.push({ work, giveUpAt, resolve: resolve as (value: unknown) => void, reject });
      if (!this.#isUnderWay) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#isUnderWay = true;
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
    this.#isUnderWay = false;
  }

  /** What was committed counts once it is on the disk. */
  async #onDisk(settled: Settled[]): Promise<Settled[]> {
    if (settled.every(isError)) return settled;
    try {
      await this.#options.sync();
      return settled;
    } catch (error) {
      return settled.map((one) => (isError(one) ? one : { error }));
    }
  }

  /** All in one transaction; where one of them fails, each in its own, which is dearer and rare. */
  #tryAll(batch: Entry[]): Settled[] {
    const { commit } = this.#options;
    try {
      return commit(() => batch.map(({ work }) => ({ value: atOnce(work) })));
    } catch (error) {
      if (isLocked(error) || batch.length === 1) return batch.map(() => ({ error }));
      return batch.map(({ work }) => attempt(() => commit(() => atOnce(work))));
    }
  }
}

/** False where it is to be tried again. */
function settle({ resolve, reject, giveUpAt }: Entry, settled: Settled | undefined, now: number): boolean {
  if (settled === undefined || (isError(settled) && isLocked(settled.error) && now < giveUpAt)) return false;
  if (isError(settled)) reject(settled.error);
  else resolve(settled.value);
  return true;
}

function isError(settled: Settled): settled is { error: unknown } {
  return 'error' in settled;
}

/** What `work` returns. A promise would go on after the commit. */
function atOnce(work: () => unknown): unknown {
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
