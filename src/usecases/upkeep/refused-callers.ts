import type { RankdError } from '../../base/errors.ts';
import type { RefusalDetails } from '../../base/refusal-details.ts';
import { callersRefused } from '../../core/events.ts';
import type { Ports } from '../../ports/index.ts';

/** How many details are counted apart for each code between two flushes: callers can make up as many places as they like. */
const maxReasons = 10;

interface Sum {
  details: Partial<RefusalDetails> | typeof others;
  count: number;
}

/** The name under which everything beyond that is counted. */
const others = { reason: 'other' } as const;

/** Counts callers that were refused and writes the sums to the audit, so that noise can't fill the disk. */
export class RefusedCallers {
  /** By code, then by the name of the details. */
  readonly #sums = new Map<string, Map<string, Sum>>();
  /** What was counted last. Who keeps on is refused with the same details, and to name these takes longer than to count. */
  #latest: { code: string; details: RankdError['details']; sum: Sum } | undefined;

  count({ code, details }: RankdError): void {
    if (this.#latest?.code !== code || this.#latest.details !== details)
      this.#latest = { code, details, sum: this.#sumOf(code, details ?? {}) };
    this.#latest.sum.count += 1;
  }

  #sumOf(code: string, details: Sum['details']): Sum {
    const sums = this.#sums.get(code) ?? new Map<string, Sum>();
    this.#sums.set(code, sums);
    const name = nameOf(details);
    const known = sums.get(name);
    if (known !== undefined) return known;
    if (sums.size >= maxReasons && details !== others) return this.#sumOf(code, others);
    const sum = { details, count: 0 };
    sums.set(name, sum);
    return sum;
  }

  /** Writes what was counted since the last flush. Sums that can't be written are kept for the next one. */
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
        const detail = { ...sum.details, count: sum.count };
        await store.appendAudit(callersRefused(code, detail, { by: 'daemon', at: clock.now() })).catch((error) => {
          this.#sumOf(code, sum.details).count += sum.count;
          throw error;
        });
      }),
    );
  }
}

function nameOf({ reason, keyId, placeId }: { reason?: string; keyId?: string; placeId?: number }): string {
  return `${reason} ${keyId} ${placeId}`;
}
