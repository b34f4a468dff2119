import type { RankdError, RefusalDetails } from '../../base/errors.ts';
import { callersRefused, dashboardEvent } from '../../core/events.ts';
import type { Ports } from '../../ports/index.ts';

/**
 * The maximum number of separate counts per error code between two flushes: this many with full details, then this many
 * by address alone. There is a limit because callers can make up places and use many addresses.
 */
const maxKinds = 10;

type Detail = Partial<RefusalDetails> | Record<string, string>;

interface Sum {
  detail: Detail;
  count: number;
}

/**
 * Counts refused callers, and writes only the totals to the audit log, so that a flood of requests can't fill the disk.
 */
export class RefusedCallers {
  /** Keyed by error code (or `page`), then by detail. */
  readonly #sums = new Map<string, Map<string, Sum>>();
  /**
   * Caches the latest sum, because most callers are refused repeatedly for the same reason, and looking up the sum is
   * slow.
   */
  #latest: { code: string; details: RankdError['details']; from: string; sum: Sum } | undefined;

  count({ code, details }: RankdError, from: string): void {
    const latest = this.#latest;
    if (latest?.code === code && latest.details === details && latest.from === from) latest.sum.count += 1;
    else {
      const sum = this.#sumOf(code, [{ ...details, from }, { reason: 'other', from }, { reason: 'other' }]);
      sum.count += 1;
      this.#latest = { code, details, from, sum };
    }
  }

  /**
   * Counts a request that the dashboard refused. `site` and `origin` are the source of the request according to the
   * browser.
   */
  countAtPage(code: string, asked: { path: string; site: string; origin: string; from: string }): void {
    this.#sumOf(page, [
      { code, ...asked },
      { code, path: 'other' },
    ]).count += 1;
  }

  /** Returns the sum for the most specific of these details that has room. The last one, `other`, always has room. */
  #sumOf(code: string, details: readonly Detail[]): Sum {
    const sums = this.#sums.get(code) ?? new Map<string, Sum>();
    this.#sums.set(code, sums);
    for (const [index, detail] of details.entries()) {
      const name = JSON.stringify(detail);
      const known = sums.get(name);
      if (known !== undefined) return known;
      if (sums.size >= maxKinds * (index + 1) && index < details.length - 1) continue;
      const sum = { detail, count: 0 };
      sums.set(name, sum);
      return sum;
    }
    throw new Error('the last detail always has room');
  }

  /** Writes the counts since the last flush. The next flush retries any that could not be written. */
  async flush({
    store,
    clock,
  }: {
    store: Pick<Ports['store'], 'appendAudit'>;
    clock: Pick<Ports['clock'], 'now'>;
  }): Promise<void> {
    const counted = [...this.#sums].flatMap(([code, sums]) => [...sums.values()].map((sum) => ({ code, sum })));
    this.#sums.clear();
    this.#latest = undefined;
    await Promise.all(
      counted.map(async ({ code, sum }) => {
        const detail = { ...sum.detail, count: sum.count };
        const actor = { by: 'daemon', at: clock.now() };
        const event = code === page ? dashboardEvent('refuse', detail, actor) : callersRefused(code, detail, actor);
        await store.appendAudit(event).catch((error) => {
          this.#sumOf(code, [sum.detail]).count += sum.count;
          throw error;
        });
      }),
    );
  }
}

/** The code under which refusals by the dashboard are counted. */
const page = 'page';
