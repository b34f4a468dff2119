import type { KeyUse, Store } from '../../ports/index.ts';

/**
 * The last use of each secret, buffered in memory so that no request waits for the disk. A crash loses unflushed uses.
 */
export class KeyUses {
  readonly #latest = new Map<string, KeyUse>();

  note(use: KeyUse): void {
    this.#latest.set(use.secretId, use);
  }

  /** Saves the uses since the last flush. Failed ones are retried with the next flush. */
  async flush({ store }: { store: Pick<Store, 'recordKeyUses'> }): Promise<void> {
    const uses = [...this.#latest.values()];
    if (uses.length === 0) return;
    this.#latest.clear();
    try {
      await store.recordKeyUses(uses);
    } catch (error) {
      for (const use of uses) this.#latest.set(use.secretId, this.#latest.get(use.secretId) ?? use);
      throw error;
    }
  }
}
