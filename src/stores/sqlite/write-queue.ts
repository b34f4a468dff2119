import { systemClock } from '../../clock.ts';
import { isLocked } from './sqlite-error.ts';

/** What the queue needs of a database. */
export interface Transactions {
  /** Runs `work` in a transaction. Throws what `work` throws, and at once where another process holds the lock. */
  commit<T>(work: () => T): T;
  /** Within `commit`: where `work` throws, what it did is taken back, and no more. */
  part<T>(work: () => T): T;
  /** False within `commit` once SQLite has given up all of the transaction, as it may where the disk fails. */
  isAlive(): boolean;
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
 * Commits together what is written in one turn of the event loop: a commit waits for the disk, and holds the thread meanwhile.
 * Each piece is all there or not at all, whatever becomes of the others. While another process holds the lock, all wait
 * without holding the thread.
 */
export class WriteQueue {
  readonly #transactions: Transactions;
  readonly #patienceMs: number;
  #waiting: Entry[] = [];
  #isUnderWay = false;

  constructor(transactions: Transactions, patienceMs: number) {
    this.#transactions = transactions;
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

  #tryAll(batch: Entry[]): Settled[] {
    const { commit, part, isAlive } = this.#transactions;
    const alone = () => batch.map(({ work }) => attempt(() => commit(work)));
    if (batch.length === 1) return alone();
    try {
      return commit(() =>
        batch.map(({ work }) => {
          const settled = attempt(() => part(work));
          if (!isAlive()) throw new Error('SQLite has given up the transaction');
          return settled;
        }),
      );
    } catch (error) {
      return isLocked(error) ? batch.map(() => ({ error })) : alone();
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

function attempt(work: () => unknown): Settled {
  try {
    return { value: work() };
  } catch (error) {
    return { error };
  }
}
