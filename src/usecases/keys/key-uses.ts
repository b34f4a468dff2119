import type { KeyUse, Store } from '../../ports/index.ts';

/**
 * Buffers each secret's last use in memory, so that no request waits for the disk. A crash loses uses that were not
 * flushed.
 */
export class KeyUses {
  readonly #latest = new Map<string, KeyUse>();

  note(use: KeyUse): void {
    this.#latest.set(use.secretId, use);
  }

  /** Stores the uses since the last flush. If this fails, the next flush retries them. */
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

/** Limits the number of remembered places, because callers can make up place ids. */
const maxPlaces = 100;

export interface GameModule {
  placeId: number;
  version: string;
}

/** The versions of the Rankd module that games have reported since the daemon started. */
export class GameModules {
  readonly #versions = new Map<number, string>();

  note(placeId: number | undefined, version: string | string[] | undefined): void {
    if (placeId === undefined || typeof version !== 'string' || this.#versions.get(placeId) === version) return;
    if (!/^\d{1,4}\.\d{1,4}\.\d{1,4}$/.test(version)) return;
    this.#versions.delete(placeId);
    this.#versions.set(placeId, version);
    for (const oldest of this.#versions.keys()) if (this.#versions.size > maxPlaces) this.#versions.delete(oldest);
  }

  olderThan(version: string): GameModule[] {
    return [...this.#versions]
      .filter(([, other]) => isOlder(other, version))
      .map(([placeId, other]) => ({ placeId, version: other }))
      .sort((one, other) => one.placeId - other.placeId);
  }
}

function isOlder(one: string, other: string): boolean {
  const [mine = [], theirs = []] = [one, other].map((version) => version.split('.').map(Number.parseFloat));
  const at = mine.findIndex((part, index) => part !== theirs[index]);
  return at >= 0 && (mine[at] ?? 0) < (theirs[at] ?? 0);
}
