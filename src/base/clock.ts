/** A source of time and delays that tests can replace. */
export interface Clock {
  /** The wall clock in epoch milliseconds, for timestamps. It can jump. */
  now(): number;
  /** Milliseconds that never go backwards, for deadlines and durations. */
  monotonic(): number;
  /** When the wall clock last jumped (on `monotonic()`); absent if it has not. */
  readonly jumpedAt?: number | undefined;
  /** Rejects with the signal's reason as soon as `signal` is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const cancel = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(
        () => {
          signal?.removeEventListener('abort', cancel);
          resolve();
        },
        Math.max(0, ms),
      ); // Node.js prints a warning for a negative delay, which a deadline in the past would cause
      signal?.addEventListener('abort', cancel, { once: true });
    }),
};

/** Disposing a deadline releases its timer. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  /** In milliseconds (on `Clock.monotonic()`). */
  readonly at: number;
}

/** A shared abort reason for cancelled timers, because creating the default error costs more than the timer. */
export const released = new Error('no caller waits for this any more');

export function deadlineIn(clock: Clock, ms: number): Deadline {
  const expired = new AbortController();
  const timer = new AbortController();
  clock.sleep(ms, timer.signal).then(
    () => expired.abort(),
    () => undefined, // disposed before the deadline
  );
  return { signal: expired.signal, at: clock.monotonic() + ms, [Symbol.dispose]: () => timer.abort(released) };
}

/** Stops waiting for `promise`, and rejects with the signal's reason, as soon as `signal` is aborted. */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort);
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
