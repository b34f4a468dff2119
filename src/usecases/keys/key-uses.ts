import type { KeyUse, Store } from '../../ports/index.ts';

/** Each secret's last use, buffered in memory so that no request waits for the disk. A crash loses unflushed uses. */
export class KeyUses {
  readonly #latest = new Map<string, KeyUse>();

  note(use: KeyUse): void {
    this.#latest.set(use.secretId, use);
  }

  /** Stores the uses since the last flush. If that fails, the next flush retries. */
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

/** The maximum number of remembered places. It is limited because callers can make up place ids. */
const maxPlaces = 100;

/** The version of the Rankd module that requests from a place report. */
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

  /** Returns the modules that are older than this version, sorted by place. */
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
