import { abortable } from '../../base/abortable.ts';
import type { CallContext, Clock } from '../../ports/index.ts';

/** A value read from the platform, kept for a while; callers that arrive during a read share it. */
export class Remembered<T> {
  readonly #clock: Clock;
  readonly #lifeMs: number;
  readonly #read: (call: CallContext) => Promise<T>;
  #kept: { value: T; at: number } | undefined;
  #reading: Promise<T> | undefined;

  constructor(clock: Clock, lifeMs: number, read: (call: CallContext) => Promise<T>) {
    this.#clock = clock;
    this.#lifeMs = lifeMs;
    this.#read = read;
  }

  /** The value, no older than `maxAgeMs` (its usual life if none is given). */
  async get(call: CallContext, { maxAgeMs = this.#lifeMs }: { maxAgeMs?: number } = {}): Promise<T> {
    if (this.#kept !== undefined && this.#clock.monotonic() - this.#kept.at < maxAgeMs) return this.#kept.value;
    const others = this.#reading;
    if (others !== undefined) {
      // The first reader's deadline is not ours: if its read fails, we try with our own.
      const settled = others.then(
        (value) => ({ value }),
        () => undefined,
      );
      const shared = await abortable(settled, call.signal);
      return shared === undefined ? this.get(call, { maxAgeMs }) : shared.value;
    }
    this.#reading = this.#read(call);
    try {
      const value = await this.#reading;
      this.#kept = { value, at: this.#clock.monotonic() };
      return value;
    } finally {
      this.#reading = undefined;
    }
  }
}
