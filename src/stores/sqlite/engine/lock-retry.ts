import { systemClock } from '../../../base/clock.ts';
import { isLocked } from './sqlite-error.ts';

/** How long to wait before another process's lock is tried again, in milliseconds. */
export const retryEveryMs = 15;

/**
 * Runs `work` again while another process holds the lock, for at most `timeoutMs` milliseconds, and blocks the thread meanwhile.
 * It is for opening a database and for reads, which hardly ever meet a lock in WAL mode. Writes wait in `GroupCommit`, which does not block.
 */
export function retryWhileLocked<T>(work: () => T, timeoutMs: number): T {
  for (let giveUpAt: number | undefined; ; ) {
    try {
      return work();
    } catch (error) {
      if (!isLocked(error)) throw error;
      const now = systemClock.monotonic();
      giveUpAt ??= now + timeoutMs;
      if (now >= giveUpAt) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryEveryMs);
    }
  }
}
