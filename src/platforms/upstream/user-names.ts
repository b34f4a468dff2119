import { abortable, deadlineIn } from '../../base/clock.ts';
import type { NamedUser } from '../../core/user-name.ts';
import type { CallContext, Clock } from '../../ports/index.ts';

export interface UserNamesOptions {
  clock: Clock;
  /** Asks the platform for the users with these names, at most `maxNames` of them. What it does not know is missing in its answer. */
  ask: (names: string[], call: CallContext) => Promise<Array<NamedUser & { asked: string }>>;
  /** How long the platform is waited for at most, in milliseconds. */
  timeoutMs: number;
}

/** Questions that come within this time travel together. */
const gatherMs = 100;
/** The platform refuses longer questions: "Too many usernames". */
const maxNames = 50;
const knownForMs = 300_000;
const unknownForMs = 30_000;
const maxRemembered = 1_000;

/** Whom names lead to. Callers who ask for the same name at the same time share one question. */
export class UserNames {
  readonly #options: UserNamesOptions;
  /** By the name in lower case, the oldest first. */
  readonly #remembered = new Map<string, { user: NamedUser | undefined; until: number }>();
  readonly #asked = new Map<string, Promise<NamedUser | undefined>>();
  #gathering: { names: string[]; answer: Promise<Map<string, NamedUser>> } | undefined;

  constructor(options: UserNamesOptions) {
    this.#options = options;
  }

  async find(name: string, call: CallContext): Promise<NamedUser | undefined> {
    const key = name.toLowerCase();
    const remembered = this.#remembered.get(key);
    if (remembered !== undefined && this.#options.clock.monotonic() < remembered.until) return remembered.user;
    const asked = this.#asked.get(key) ?? this.#ask(key);
    return abortable(asked, call.signal);
  }

  #ask(key: string): Promise<NamedUser | undefined> {
    const asked = this.#gather(key)
      .then((users) => this.#remember(key, users.get(key)))
      .finally(() => this.#asked.delete(key));
    this.#asked.set(key, asked);
    asked.catch(() => undefined); // everybody who asked may have gone
    return asked;
  }

  /** Adds the name to the next question. */
  #gather(key: string): Promise<Map<string, NamedUser>> {
    const open = this.#gathering;
    if (open !== undefined && open.names.length < maxNames) {
      open.names.push(key);
      return open.answer;
    }
    const names = [key];
    const gathering = { names, answer: this.#answerTo(names) };
    this.#gathering = gathering;
    return gathering.answer;
  }

  async #answerTo(names: string[]): Promise<Map<string, NamedUser>> {
    const { clock, ask, timeoutMs } = this.#options;
    await clock.sleep(gatherMs);
    if (this.#gathering?.names === names) this.#gathering = undefined;
    using deadline = deadlineIn(clock, timeoutMs);
    const users = await ask(names, { signal: deadline.signal, deadlineAt: deadline.at, lane: 'user names' });
    return new Map(users.map(({ asked, id, name }) => [asked.toLowerCase(), { id, name }]));
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
