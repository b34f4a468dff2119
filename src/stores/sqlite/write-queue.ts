import { systemClock } from '../../clock.ts';
import { isLocked } from './sqlite-error.ts';

/** Runs `work` in a transaction. Throws what `work` throws, and at once where another process holds the lock. */
type Commit = <T>(work: () => T) => T;

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
 * Commits together what is written in one turn of the event loop: a commit waits for the disk, and holds the thread meanwhile.
 * Each piece is all there or not at all, whatever becomes of the others. While another process holds the lock, all wait
 * without holding the thread.
 */
export class WriteQueue {
  readonly #commit: Commit;
  readonly #patienceMs: number;
  #waiting: Entry[] = [];
  #isUnderWay = false;

  constructor(commit: Commit, patienceMs: number) {
    this.#commit = commit;
    this.#patienceMs = patienceMs;
  }

  /** Resolves with what `work` returned once that is committed. `work` may be run again, up to the time that counts. */
  add<T>(work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const giveUpAt = systemClock.monotonic() + this.#patienceMs; // other processes do not live by a test's clock
      this.#waiting.push({ work, giveUpAt, resolve: resolve as (value: unknown) => void, reject });
      if (this.#isUnderWay) return;
      this.#isUnderWay = true;
      setImmediate(() => void this.#work());
    });
  }

  async #work(): Promise<void> {
    for (;;) {
      const batch = this.#waiting;
      this.#waiting = [];
      const now = systemClock.monotonic();
      const settled = this.#tryAll(batch);
      const kept = batch.filter((entry, index) => !settle(entry, settled[index], now));
      this.#waiting.unshift(...kept);
      if (this.#waiting.length === 0) break;
      await systemClock.sleep(retryEveryMs);
    }
    this.#isUnderWay = false;
  }

  /** All in one transaction; where one of them fails, each in its own, which is dearer and rare. */
  #tryAll(batch: Entry[]): Settled[] {
    try {
      return this.#commit(() => batch.map(({ work }) => ({ value: atOnce(work) })));
    } catch (error) {
      if (isLocked(error) || batch.length === 1) return batch.map(() => ({ error }));
      return batch.map(({ work }) => attempt(() => this.#commit(() => atOnce(work))));
    }
  }
}

/** False where it is to be tried again. */
function settle({ resolve, reject, giveUpAt }: Entry, settled: Settled | undefined, now: number): boolean {
  if (settled === undefined || ('error' in settled && isLocked(settled.error) && now < giveUpAt)) return false;
  if ('error' in settled) reject(settled.error);
  else resolve(settled.value);
  return true;
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
