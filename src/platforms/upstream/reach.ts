import type { RankdError } from '../../base/errors.ts';
import type { Reachability } from '../../ports/index.ts';

interface Host {
  /** The number of failed attempts since the last response. */
  failures: number;
  hasAnswered: boolean;
  failing?: { error: RankdError; since: number; lastAt: number };
}

/** A failure expires after this, because an idle daemon may not call the same host again for a day. */
const failureLifeMs = 600_000;

/**
 * Tracks which of the platform's hosts respond. Once a host has responded, it takes two consecutive failures to make it
 * count as failing.
 */
export class Reach {
  readonly #hosts = new Map<string, Host>();
  readonly #now: () => number;
  #clockAheadMs: number | undefined;

  constructor(now: () => number) {
    this.#now = now;
  }

  failed(baseUrl: string, error: RankdError): void {
    const host = this.#hosts.get(baseUrl) ?? { failures: 0, hasAnswered: false };
    const failures = host.failures + 1;
    const lastAt = this.#now();
    const since = this.#isUnreached(host) ? host.failing.since : lastAt;
    const isFailing = !host.hasAnswered || failures > 1;
    this.#hosts.set(baseUrl, { ...host, failures, ...(isFailing && { failing: { error, since, lastAt } }) });
  }

  /**
   * Records a response. Compares its `Date` header (in whole seconds) with this machine's real clock, even if rankd
   * uses a different one.
   */
  answered(baseUrl: string, headers: Headers): void {
    this.#hosts.set(baseUrl, { failures: 0, hasAnswered: true });
    const platformAt = Date.parse(headers.get('date') ?? '');
    if (!Number.isNaN(platformAt)) this.#clockAheadMs = Date.now() - platformAt;
  }

  state(): Reachability {
    const hosts = [...this.#hosts].map(([baseUrl, host]) => ({ ...host, host: new URL(baseUrl).host }));
    return {
      unreached: hosts.filter(this.#isUnreached).map(({ host, failing: { error, since } }) => ({ host, error, since })),
      reached: hosts.flatMap(({ host, failing }) => (failing === undefined ? [host] : [])),
      clockAheadMs: this.#clockAheadMs,
    };
  }

  #isUnreached = <T extends Host>(host: T): host is T & { failing: NonNullable<Host['failing']> } =>
    host.failing !== undefined && this.#now() - host.failing.lastAt < failureLifeMs;
}
