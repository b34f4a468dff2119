import { crypto } from '../../base/node-modules.ts';
import type { Clock, LoginLink } from '../../ports/index.ts';

/** The default lifetime of a session. */
export const sessionLifeMs = 12 * 3_600_000;
/** After this much idle time, the session is read-only. */
const idleMs = 30 * 60_000;
/** At this number of sessions, a new one replaces the oldest. */
const maxSessions = 100;

/** All times are from `Clock.now()`. */
export interface Session {
  readonly id: string;
  /** The operator who created the link, as recorded in the audit log: `web:<user>@<host>`. */
  readonly by: string;
  readonly loggedInAt: number;
  readonly expiresAt: number;
  readonly mayChangeUntil: number;
  readonly isViewOnly: boolean;
  readonly lifeMs: number;
}

/** The properties that a login link gives to its session. */
export type SessionKind = Omit<LoginLink, 'by'>;

export const usualKind: SessionKind = { isViewOnly: false, lifeMs: sessionLifeMs };

interface StoredSession extends Session {
  tokenHash: Buffer;
  endsAtMonotonic: number;
  idleAtMonotonic: number;
  mayChangeUntil: number;
  onEnd: Set<() => void>;
}

/**
 * The credentials for a browser's session: a cookie that scripts can't read, and a token that only pages on this port
 * can read.
 */
export interface Login {
  session: Session;
  cookie: string;
  token: string;
}

/**
 * The page's sessions, stored in memory only, so that a restart ends them. Only hashes of their secrets are stored.
 * Lifetimes use the monotonic clock, so that a jump of the wall clock does not change them.
 */
export class Sessions {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly #sessions = new Map<string, StoredSession>();

  constructor(clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#clock = clock;
  }

  get count(): number {
    this.#sweep();
    return this.#sessions.size;
  }

  begin(link: LoginLink): Login {
    this.#sweep();
    const cookie = crypto().randomBytes(32).toString('base64url');
    const token = crypto().randomBytes(32).toString('base64url');
    const [now, monotonic] = [this.#clock.now(), this.#clock.monotonic()];
    const session: StoredSession = {
      ...{ id: hashOf(cookie).slice(0, 16), by: link.by, isViewOnly: link.isViewOnly, lifeMs: link.lifeMs },
      ...{ loggedInAt: now, expiresAt: now + link.lifeMs, mayChangeUntil: now + (link.isViewOnly ? 0 : idleMs) },
      tokenHash: crypto().createHash('sha256').update(token).digest(),
      ...{ endsAtMonotonic: monotonic + link.lifeMs, idleAtMonotonic: monotonic + idleMs },
      onEnd: new Set(),
    };
    for (const dropped of dropOldest(this.#sessions, maxSessions)) end(dropped);
    this.#sessions.set(hashOf(cookie), session);
    return { session, cookie, token };
  }

  find(cookie: string | undefined): Session | undefined {
    this.#sweep();
    return cookie === undefined ? undefined : this.#sessions.get(hashOf(cookie));
  }

  /** Compares a token with the session's, in constant time. */
  isToken(session: Session, token: string | undefined): boolean {
    const hash = crypto()
      .createHash('sha256')
      .update(token ?? '')
      .digest();
    return crypto().timingSafeEqual(hash, (session as StoredSession).tokenHash);
  }

  /** True if the user has been active recently enough to make changes. */
  mayChange(session: Session): boolean {
    return (session as StoredSession).idleAtMonotonic > this.#clock.monotonic();
  }

  /** Records the user's activity. */
  touch(session: Session): void {
    const stored = session as StoredSession;
    stored.idleAtMonotonic = this.#clock.monotonic() + idleMs;
    stored.mayChangeUntil = Math.min(this.#clock.now() + idleMs, stored.expiresAt);
  }

  /** Calls `ended` when the session ends. Returns a function that removes this callback. */
  whenEnded(session: Session, ended: () => void): () => void {
    const { onEnd } = session as StoredSession;
    onEnd.add(ended);
    return () => onEnd.delete(ended);
  }

  logOut(session: Session): void {
    for (const [hash, stored] of this.#sessions) if (stored === session) this.#end(hash, stored);
  }

  logAllOut(): number {
    const { count } = this;
    for (const [hash, stored] of this.#sessions) this.#end(hash, stored);
    return count;
  }

  #sweep(): void {
    const now = this.#clock.monotonic();
    for (const [hash, stored] of this.#sessions) if (stored.endsAtMonotonic <= now) this.#end(hash, stored);
  }

  #end(hash: string, stored: StoredSession): void {
    this.#sessions.delete(hash);
    end(stored);
  }
}

function end({ onEnd }: StoredSession): void {
  for (const ended of onEnd) ended();
}

/** Removes and returns the oldest entries, to make room for one more. */
function dropOldest<Value>(map: Map<string, Value>, max: number): Value[] {
  const dropped = [...map.entries()].slice(0, Math.max(0, map.size - max + 1));
  for (const [key] of dropped) map.delete(key);
  return dropped.map(([, value]) => value);
}

function hashOf(secret: string): string {
  return crypto().hash('sha256', secret);
}
