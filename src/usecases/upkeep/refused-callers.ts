import type { RankdError } from '../../base/errors.ts';
import { callersRefused } from '../../core/events.ts';
import type { Ports } from '../../ports/index.ts';

/** For each code, between two flushes: callers can make up as many places as they like. */
const maxReasons = 10;

interface Sum {
  detail: Record<string, unknown>;
  count: number;
}

/** Counts callers that were turned away and writes the sums to the audit, so that noise can't fill the disk. */
export class RefusedCallers {
  /** By code, then by detail. */
  readonly #sums = new Map<string, Map<string, Sum>>();

  count({ code, details }: RankdError): void {
    this.#add(code, { detail: { ...details }, count: 1 });
  }

  #add(code: string, { detail, count }: Sum): void {
    const sums = this.#sums.get(code) ?? new Map<string, Sum>();
    this.#sums.set(code, sums);
    const told = sums.size < maxReasons || sums.has(nameOf(detail)) ? detail : { reason: 'other' };
    const before = sums.get(nameOf(told))?.count ?? 0;
    sums.set(nameOf(told), { detail: told, count: before + count });
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
    await Promise.all(
      counted.map(async ({ code, sum }) => {
        const detail = { ...sum.detail, count: sum.count };
        await store.appendAudit(callersRefused(code, detail, { by: 'daemon', at: clock.now() })).catch((error) => {
          this.#add(code, sum);
          throw error;
        });
      }),
    );
  }
}

function nameOf(detail: Record<string, unknown>): string {
  return JSON.stringify(detail);
}
