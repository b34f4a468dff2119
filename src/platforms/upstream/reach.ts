import type { RankdError } from '../../base/errors.ts';
import type { Reachability } from '../../ports/index.ts';

interface Host {
  /** Tries without an answer since the last answer. */
  failures: number;
  hasAnswered: boolean;
  failing?: { error: RankdError; since: number };
}

/** Which hosts of the platform answer. One connection that breaks is no news where the next try may succeed: two in a row are. */
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
    const since = host.failing?.since ?? this.#now();
    const isNews = !host.hasAnswered || failures > 1;
    this.#hosts.set(baseUrl, { ...host, failures, ...(isNews && { failing: { error, since } }) });
  }

  /** The `Date` header is in whole seconds, and compared with the clock of this machine, whatever clock rankd works with. */
  answered(baseUrl: string, headers: Headers): void {
    this.#hosts.set(baseUrl, { failures: 0, hasAnswered: true });
    const platformAt = Date.parse(headers.get('date') ?? '');
    if (!Number.isNaN(platformAt)) this.#clockAheadMs = Date.now() - platformAt;
  }

  state(): Reachability {
    const hosts = [...this.#hosts].map(([baseUrl, host]) => ({ ...host, host: new URL(baseUrl).host }));
    return {
      unreached: hosts.flatMap(({ host, failing }) => (failing === undefined ? [] : [{ host, ...failing }])),
      clockAheadMs: this.#clockAheadMs,
    };
  }
}
