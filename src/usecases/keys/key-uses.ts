import type { KeyUse, Store } from '../../ports/index.ts';

/** The last use of each secret, gathered in memory so that no request waits for the disk. A crash loses what was not flushed. */
export class KeyUses {
  readonly #latest = new Map<string, KeyUse>();

  note(use: KeyUse): void {
    this.#latest.set(use.secretId, use);
  }

  /** Writes what was noted since the last flush. What can't be written is tried again with the next one. */
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
