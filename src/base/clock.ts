/** The only source of time and of waiting. */
export interface Clock {
  /** Wall clock, epoch milliseconds: for records. It can jump. */
  now(): number;
  /** Milliseconds that only ever go forward: for deadlines and durations. */
  monotonic(): number;
  /** Resolves after `ms`; rejects as soon as `signal` is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The real clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const calledOff = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', calledOff);
        resolve();
      }, ms);
      signal?.addEventListener('abort', calledOff, { once: true });
    }),
};

/** A point in time after which nobody waits any more, both as a moment and as a signal. Dispose it to release its timer. */
export interface Deadline extends Disposable {
  /** Aborted once the deadline has passed. */
  readonly signal: AbortSignal;
  /** The moment on `Clock.monotonic()`, in milliseconds. */
  readonly at: number;
}

/** Made once: an error of its own for each timer that is called off would cost more than the timer. */
const released = new Error('nobody waits for this any more');

/** A deadline `ms` milliseconds from now. */
export function deadlineIn(clock: Clock, ms: number): Deadline {
  const expired = new AbortController();
  const timer = new AbortController();
  clock.sleep(ms, timer.signal).then(
    () => expired.abort(),
    () => undefined, // disposed before it passed
  );
  return { signal: expired.signal, at: clock.monotonic() + ms, [Symbol.dispose]: () => timer.abort(released) };
}
