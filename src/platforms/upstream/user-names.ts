import { abortable, deadlineIn } from '../../base/clock.ts';
import type { NamedUser } from '../../core/user-name.ts';
import type { CallContext, Clock } from '../../ports/index.ts';
import { FairQueue } from './fair-queue.ts';

export interface UserNamesOptions {
  clock: Clock;
  /** Asks the platform for the users with these names, at most `maxNames` of them. What it does not know is missing in its answer. */
  ask: (names: string[], call: CallContext) => Promise<Array<NamedUser & { asked: string }>>;
  /** How long the platform is waited for at most, in milliseconds. */
  timeoutMs: number;
}

/** Questions that come within this time travel together, and so do all that come while another one is on its way. */
const gatherMs = 100;
/** The platform refuses longer questions: "Too many usernames". */
const maxNames = 50;
/** Thirty a minute at most: some at once, then one every few seconds, so that at no time a whole minute's questions are used up. */
const pace = { atOnce: 15, spacingMs: 4_000, windowMs: 60_000 };
const knownForMs = 300_000;
const unknownForMs = 30_000;
const maxRemembered = 1_000;

/** A name that somebody waits for. */
interface Wanted {
  name: string;
  /** Who asks for it. It waits once for each of them, so that nobody waits behind what others have asked for. */
  lanes: Set<string>;
  /** When the last of them is gone, on `Clock.monotonic()`. */
  deadlineAt: number;
  isAsked: boolean;
  answer: PromiseWithResolvers<NamedUser | undefined>;
}

/**
 * Whom names lead to. Callers who ask for the same name at the same time share one question. The platform lets few of them through, so
 * one is on its way at a time, and the lanes take turns in filling the next: a key that asks for names without end keeps no other waiting.
 */
export class UserNames {
  readonly #options: UserNamesOptions;
  /** By the name in lower case, the oldest first. */
  readonly #remembered = new Map<string, { user: NamedUser | undefined; until: number }>();
  readonly #wanted = new Map<string, Wanted>();
  readonly #queue = new FairQueue<Wanted>();
  #askedAt: number[] = [];
  #isAsking = false;

  constructor(options: UserNamesOptions) {
    this.#options = options;
  }

  async find(name: string, call: CallContext): Promise<NamedUser | undefined> {
    const key = name.toLowerCase();
    const remembered = this.#remembered.get(key);
    if (remembered !== undefined && this.#options.clock.monotonic() < remembered.until) return remembered.user;
    const { answer } = this.#want(key, call);
    return abortable(answer.promise, call.signal);
  }

  #want(name: string, { lane, deadlineAt }: CallContext): Wanted {
    const wanted = this.#wanted.get(name) ?? this.#newlyWanted(name);
    wanted.deadlineAt = Math.max(wanted.deadlineAt, deadlineAt);
    if (!wanted.isAsked && !wanted.lanes.has(lane)) {
      wanted.lanes.add(lane);
      this.#queue.push(lane, wanted);
    }
    if (!this.#isAsking) void this.#askForAll();
    return wanted;
  }

  #newlyWanted(name: string): Wanted {
    const answer = Promise.withResolvers<NamedUser | undefined>();
    const wanted = { name, lanes: new Set<string>(), deadlineAt: 0, isAsked: false, answer };
    wanted.answer.promise.catch(() => undefined); // everybody who asked may have gone
    this.#wanted.set(name, wanted);
    return wanted;
  }

  async #askForAll(): Promise<void> {
    this.#isAsking = true;
    while (this.#wanted.size > 0) {
      await this.#options.clock.sleep(Math.max(gatherMs, this.#openAt() - this.#options.clock.monotonic()));
      const batch = this.#nextBatch();
      if (batch.length > 0) await this.#askFor(batch);
    }
    this.#isAsking = false;
  }

  /** The names of the next question. Those whom nobody waits for any longer are dropped. */
  #nextBatch(): Wanted[] {
    const now = this.#options.clock.monotonic();
    const batch: Wanted[] = [];
    while (batch.length < maxNames) {
      const wanted = this.#queue.shift();
      if (wanted === undefined) break;
      if (wanted.isAsked || this.#wanted.get(wanted.name) !== wanted) continue; // it stood in another lane as well
      wanted.isAsked = wanted.deadlineAt > now;
      if (wanted.isAsked) batch.push(wanted);
      else this.#wanted.delete(wanted.name);
    }
    return batch;
  }

  /** When the next question may be asked. */
  #openAt(): number {
    const { atOnce, spacingMs, windowMs } = pace;
    const since = this.#options.clock.monotonic() - windowMs;
    this.#askedAt = this.#askedAt.filter((at) => at > since);
    return this.#askedAt.length < atOnce ? 0 : (this.#askedAt.at(-1) ?? 0) + spacingMs;
  }

  async #askFor(batch: Wanted[]): Promise<void> {
    const { clock, ask, timeoutMs } = this.#options;
    this.#askedAt.push(clock.monotonic());
    using deadline = deadlineIn(clock, timeoutMs);
    const call = { signal: deadline.signal, deadlineAt: deadline.at, lane: 'user names' };
    const names = batch.map(({ name }) => name);
    const answered = await ask(names, call).then(
      (users) => new Map(users.map(({ asked, id, name }) => [asked.toLowerCase(), { id, name }])),
      (error) => ({ error }),
    );
    for (const { name, answer } of batch) {
      this.#wanted.delete(name);
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
