import type { Outcome } from '../../core/webhooks/progress.ts';

export interface DeliveryCount {
  webhook: string;
  outcome: Outcome['kind'];
  count: number;
}

/** The number of events that each target accepted or refused, since the process began. */
export class DeliveryCounts {
  readonly #counts = new Map<string, DeliveryCount>();

  note(webhook: string, outcome: Outcome['kind'], events: number): void {
    const key = `${webhook} ${outcome}`;
    const before = this.#counts.get(key)?.count ?? 0;
    this.#counts.set(key, { webhook, outcome, count: before + events });
  }

  list(): DeliveryCount[] {
    return [...this.#counts.values()];
  }
}
