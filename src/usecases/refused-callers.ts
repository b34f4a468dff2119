import type { RankdError } from '../errors.ts';
import type { Ports } from '../ports.ts';

const mostKinds = 200;

/** Counts callers that were turned away and writes them to the audit in sums: noise can't fill the disk. */
export class RefusedCallers {
  readonly #counts = new Map<string, { code: string; reason: string; count: number }>();

  count({ code, internal = '' }: RankdError): void {
    const kind = this.#counts.size < mostKinds ? `${code} ${internal}` : `${code} (other)`;
    const entry = this.#counts.get(kind) ?? { code, reason: internal, count: 0 };
    entry.count += 1;
    this.#counts.set(kind, entry);
  }

  /** Writes what was counted since the last time. What can't be written is counted again. */
  async flush({ store }: Pick<Ports, 'store'>): Promise<void> {
    const counted = [...this.#counts];
    this.#counts.clear();
    await Promise.all(
      counted.map(async ([kind, { code, reason, count }]) => {
        const event = { by: 'daemon', action: 'caller.refused', subject: code, detail: { reason, count } };
        await store.appendAudit(event).catch((error) => {
          this.#counts.set(kind, { code, reason, count: count + (this.#counts.get(kind)?.count ?? 0) });
          throw error;
        });
      }),
    );
  }
}
