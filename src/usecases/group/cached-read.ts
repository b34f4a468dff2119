import { abortable } from '../../base/clock.ts';
import { isRankdError } from '../../base/errors.ts';
import type { Role } from '../../core/model.ts';
import type { CallContext, Clock, Ports } from '../../ports/index.ts';

interface AgeLimits {
  /** The maximum age of the value; by default, its lifetime. */
  maxAgeMs?: number;
  /** For this long after a failed read, callers get its error instead of a new read; 0 by default. */
  failureLifeMs?: number;
}

/** A cached value from the platform. Concurrent callers share a read. */
export class CachedRead<T> {
  readonly #clock: Clock;
  readonly #lifeMs: number;
  readonly #read: (call: CallContext) => Promise<T>;
  #cached: { value: T; at: number } | undefined;
  #failed: { error: unknown; at: number } | undefined;
  /** The latest caller's read; `undefined` if no read is running. */
  #latest: Promise<T> | undefined;

  constructor(clock: Clock, lifeMs: number, read: (call: CallContext) => Promise<T>) {
    this.#clock = clock;
    this.#lifeMs = lifeMs;
    this.#read = read;
  }

  get hasFailed(): boolean {
    return this.#failed !== undefined;
  }

  isFresh(maxAgeMs = this.#lifeMs): boolean {
    return this.#cached !== undefined && this.#clock.monotonic() - this.#cached.at < maxAgeMs;
  }

  async get(call: CallContext, age: AgeLimits = {}): Promise<T> {
    const known = this.#known(age);
    if (known !== undefined) return known.value;
    const before = this.#latest;
    // The running read may have a shorter deadline than this caller. If it fails, the waiting callers retry one after
    // another: if each failure woke all of them, hundreds of callers would block the process while Roblox hangs.
    const read = before === undefined ? this.#readAndCache(call) : before.catch(() => this.#inTurn(call, age));
    this.#latest = read;
    const end = () => {
      if (this.#latest === read) this.#latest = undefined;
    };
    read.then(end, end);
    return before === undefined ? read : abortable(read, call.signal);
  }

  #known({ maxAgeMs = this.#lifeMs, failureLifeMs = 0 }: AgeLimits): { value: T } | undefined {
    if (this.isFresh(maxAgeMs)) return this.#cached;
    const { error, at } = this.#failed ?? { at: Number.NEGATIVE_INFINITY };
    if (this.#clock.monotonic() - at < failureLifeMs && !ranOutOfTime(error)) throw error;
    return undefined;
  }

  async #inTurn(call: CallContext, age: AgeLimits): Promise<T> {
    call.signal.throwIfAborted();
    const known = this.#known(age);
    return known === undefined ? this.#readAndCache(call) : known.value;
  }

  async #readAndCache(call: CallContext): Promise<T> {
    try {
      const value = await this.#read(call);
      this.#cached = { value, at: this.#clock.monotonic() };
      this.#failed = undefined;
      return value;
    } catch (error) {
      this.#failed = { error, at: this.#clock.monotonic() };
      throw error;
    }
  }
}

/** True if the read might have succeeded with more time. */
function ranOutOfTime(error: unknown): boolean {
  return isRankdError(error) && (error.code === 'platform_busy' || error.connection === 'timed_out');
}

/** Returns a function that stores the group's roles whenever they differ from the stored ones. */
export function rolesRecorder({ store }: Pick<Ports, 'store'>, group: string): (roles: Role[]) => Promise<void> {
  let stored: string | undefined;
  return async (roles) => {
    const titles = roles.map(({ id, name, rank }) => ({ id, name, rank })).sort((one, other) => one.id - other.id);
    const text = JSON.stringify(titles);
    stored ??= JSON.stringify((await store.findRoles(group)).sort((one, other) => one.id - other.id));
    if (text === stored) return;
    await store.storeRoles(group, titles);
    stored = text;
  };
}
