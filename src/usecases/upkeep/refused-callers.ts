import type { RankdError } from '../../base/errors.ts';
import type { Ports } from '../../ports/index.ts';

/** Of each code, between two flushes: a caller can make up as many places as it likes. */
const maxReasons = 10;

/** Counts callers that were turned away and writes them to the audit in sums: noise can't fill the disk. */
export class RefusedCallers {
  /** By code and reason. */
  readonly #counts = new Map<string, Map<string, number>>();

  count({ code, internal = '' }: RankdError): void {
    this.#add(code, internal, 1);
  }

  #add(code: string, reason: string, count: number): void {
    const reasons = this.#counts.get(code) ?? new Map<string, number>();
    const told = reasons.has(reason) || reasons.size < maxReasons ? reason : 'other reasons';
    this.#counts.set(code, reasons.set(told, (reasons.get(told) ?? 0) + count));
  }

  /** Writes what was counted since the last time. What can't be written is counted again. */
  async flush({ store }: Pick<Ports, 'store'>): Promise<void> {
    const counted = [...this.#counts].flatMap(([code, reasons]) =>
      [...reasons].map((told) => [code, ...told] as const),
    );
    this.#counts.clear();
    await Promise.all(
      counted.map(async ([code, reason, count]) => {
        const event = { by: 'daemon', action: 'caller.refused', subject: code, detail: { reason, count } };
        await store.appendAudit(event).catch((error) => {
          this.#add(code, reason, count);
          throw error;
        });
      }),
    );
  }
}
