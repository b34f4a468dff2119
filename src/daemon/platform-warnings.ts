import { isoTime } from '../base/time.ts';
import type { DaemonContext, LiveContext } from '../usecases/daemon-context.ts';

const everyMs = 86_400_000;

/** Warns of problems in calls to the platform, whoever made them. Call `warn` every second. */
export class PlatformWarnings {
  /** By kind: the last logged surprise, and the time (on `Clock.monotonic()`) until which no other is logged. */
  readonly #logged = new Map<string, { lastAt: number; until: number }>();
  /** The hosts that were logged as unreachable, each with the reason. */
  #unreached = new Map<string, string>();

  warn({ current }: LiveContext): void {
    this.#warnOfSurprises(current);
    this.#warnOfUnreached(current);
  }

  /** Each kind is logged at most once a day. A surprise in a change was logged with the change. */
  #warnOfSurprises({ platform, clock, log }: DaemonContext): void {
    const now = clock.monotonic();
    for (const { operation, what, count, lastAt } of platform.surprises()) {
      const kind = `${operation} ${what}`;
      const logged = this.#logged.get(kind);
      if (logged !== undefined && (logged.lastAt === lastAt || now < logged.until)) continue;
      this.#logged.set(kind, { lastAt, until: now + everyMs });
      log.warn({ operation, what, count }, 'Roblox answers otherwise than rankd was built for: rankd status shows how');
    }
  }

  /** Logged at the first failure, long before the retries of a call are over, and again if the reason changes. */
  #warnOfUnreached({ platform, log }: DaemonContext): void {
    const { unreached, reached } = platform.reachability();
    for (const { host, error, since } of unreached) {
      if (this.#unreached.get(host) === error.message) continue;
      const fields = { host, since: isoTime(since), cause: error.connection, hint: error.hint, problem: 'platform' };
      log.warn(fields, error.message);
    }
    for (const host of this.#unreached.keys())
      if (reached.includes(host)) log.info({ host }, 'Roblox can be reached again');
    this.#unreached = new Map(unreached.map(({ host, error }) => [host, error.message]));
  }
}
