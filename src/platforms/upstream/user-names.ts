import { abortable, deadlineIn } from '../../base/clock.ts';
import type { NamedUser } from '../../core/model.ts';
import type { CallContext, Clock } from '../../ports/index.ts';
import { FairQueue } from './wait-queue.ts';

export interface UserNamesOptions {
  clock: Clock;
  /** Asks the platform for the users with these names, at most `maxNames`. The response omits unknown names. */
  ask: (names: string[], call: CallContext) => Promise<Array<NamedUser & { asked: string }>>;
  timeoutMs: number;
}

/** Names that are requested within this time, or while a request is in flight, share the next request. */
const gatherMs = 100;
/** The platform rejects a request with more names ("Too many usernames"). */
const maxNames = 50;
/**
 * Allows thirty requests a minute, which is the gate's limit: fifteen without a pause, then one every four seconds.
 * After a flood, lookups therefore continue within seconds instead of in the next minute.
 */
const pace = { atOnce: 15, spacingMs: 4_000, windowMs: 60_000 };
const knownForMs = 300_000;
const unknownForMs = 30_000;
const maxRemembered = 1_000;

interface PendingName {
  name: string;
  /**
   * The lanes that requested the name. It is queued in each of them, so that no lane waits behind another lane's names.
   */
  lanes: Set<string>;
  /** The latest deadline of its callers, on `Clock.monotonic()`. */
  deadlineAt: number;
  isSent: boolean;
  answer: PromiseWithResolvers<NamedUser | undefined>;
}

/**
 * Looks up users by name. Callers that ask for the same name at the same time share one request. The platform allows
 * few requests, so only one is in flight at a time. Lanes take turns adding names to the next request, so that a lane
 * with many names does not block the others.
 */
export class UserNames {
  readonly #options: UserNamesOptions;
  /** Keyed by the lowercase name, oldest first. */
  readonly #remembered = new Map<string, { user: NamedUser | undefined; until: number }>();
  readonly #pending = new Map<string, PendingName>();
  readonly #queue = new FairQueue<PendingName>();
  #sentAt: number[] = [];
  #isAsking = false;

  constructor(options: UserNamesOptions) {
    this.#options = options;
  }

  async find(name: string, call: CallContext): Promise<NamedUser | undefined> {
    const key = name.toLowerCase();
    const remembered = this.#remembered.get(key);
    if (remembered !== undefined && this.#options.clock.monotonic() < remembered.until) return remembered.user;
    const { answer } = this.#enqueue(key, call);
    return abortable(answer.promise, call.signal);
  }

  #enqueue(name: string, { lane, deadlineAt }: CallContext): PendingName {
    const pending = this.#pending.get(name) ?? this.#addPending(name);
    pending.deadlineAt = Math.max(pending.deadlineAt, deadlineAt);
    if (!pending.isSent && !pending.lanes.has(lane)) {
      pending.lanes.add(lane);
      this.#queue.push(lane, pending);
    }
    if (!this.#isAsking) void this.#askForAll();
    return pending;
  }

  #addPending(name: string): PendingName {
    const answer = Promise.withResolvers<NamedUser | undefined>();
    const pending = { name, lanes: new Set<string>(), deadlineAt: 0, isSent: false, answer };
    pending.answer.promise.catch(() => undefined); // prevents an unhandled rejection if all callers have given up
    this.#pending.set(name, pending);
    return pending;
  }

  async #askForAll(): Promise<void> {
    this.#isAsking = true;
    while (this.#pending.size > 0) {
      await this.#options.clock.sleep(Math.max(gatherMs, this.#openAt() - this.#options.clock.monotonic()));
      const batch = this.#nextBatch();
      if (batch.length > 0) await this.#askFor(batch);
    }
    this.#isAsking = false;
  }

  /** Takes the names for the next request from the queue. Drops names that no caller is waiting for anymore. */
  #nextBatch(): PendingName[] {
    const now = this.#options.clock.monotonic();
    const batch: PendingName[] = [];
    while (batch.length < maxNames) {
      const pending = this.#queue.shift();
      if (pending === undefined) break;
      if (pending.isSent || this.#pending.get(pending.name) !== pending) continue; // handled in another lane
      pending.isSent = pending.deadlineAt > now;
      if (pending.isSent) batch.push(pending);
      else this.#pending.delete(pending.name);
    }
    return batch;
  }

  #openAt(): number {
    const { atOnce, spacingMs, windowMs } = pace;
    const since = this.#options.clock.monotonic() - windowMs;
    this.#sentAt = this.#sentAt.filter((at) => at > since);
    return this.#sentAt.length < atOnce ? 0 : (this.#sentAt.at(-1) ?? 0) + spacingMs;
  }

  async #askFor(batch: PendingName[]): Promise<void> {
    const { clock, ask, timeoutMs } = this.#options;
    this.#sentAt.push(clock.monotonic());
    using deadline = deadlineIn(clock, timeoutMs);
    const call = { signal: deadline.signal, deadlineAt: deadline.at, lane: 'user names' };
    const names = batch.map(({ name }) => name);
    const answered = await ask(names, call).then(
      (users) => new Map(users.map(({ asked, id, name }) => [asked.toLowerCase(), { id, name }])),
      (error) => ({ error }),
    );
    for (const { name, answer } of batch) {
      this.#pending.delete(name);
      if ('error' in answered) answer.reject(answered.error);
      else answer.resolve(this.#remember(name, answered.get(name)));
    }
  }

  #remember(key: string, user: NamedUser | undefined): NamedUser | undefined {
    const lifeMs = user === undefined ? unknownForMs : knownForMs;
    this.#remembered.delete(key);
    this.#remembered.set(key, { user, until: this.#options.clock.monotonic() + lifeMs });
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > maxRemembered && oldest !== undefined) this.#remembered.delete(oldest);
    return user;
  }
}
