import type { KeyRecord } from '../ports/index.ts';

type LookUp = (query: { hash: string; placeId: number }) => KeyRecord | undefined;

interface Source {
  lookUp: LookUp;
  /** A value that differs once anything may have changed that `lookUp` reads. Throws if it can't be told. */
  changeToken(): string;
}

/** Enough for every key of a group at each of its places. Secrets that callers make up must not fill the memory. */
const maxEntries = 10_000;

/**
 * Remembers what a store has answered to `lookUpKey` until the store's change token differs. The token is asked for once for all that
 * is looked up without a pause. All of those requests were received before that, so none is answered from a state older than a
 * commit that it was sent after.
 */
export class KeyCache {
  readonly #source: Source;
  /** By hash, then by place: to put the two together for each look-up would cost more than both. */
  readonly #records = new Map<string, Map<number, KeyRecord | undefined>>();
  #size = 0;
  #token: string | undefined;
  /** What came of asking for the token. It is kept until the next microtask: nothing can have been received before that. */
  #asked: { failure?: unknown } | undefined;

  constructor(source: Source) {
    this.#source = source;
  }

  /** As `lookUpKey` of the port. Throws as `changeToken`, to everybody who asks without a pause. */
  lookUp({ hash, placeId }: Parameters<LookUp>[0]): KeyRecord | undefined {
    this.#freshenOnce();
    const kept = this.#records.get(hash);
    if (kept?.has(placeId)) return kept.get(placeId);
    const record = this.#source.lookUp({ hash, placeId });
    this.#remember({ hash, placeId }, record);
    return record;
  }

  #remember({ hash, placeId }: Parameters<LookUp>[0], record: KeyRecord | undefined): void {
    if (this.#size >= maxEntries) this.#forget();
    this.#size += 1;
    const places = this.#records.get(hash);
    if (places === undefined) this.#records.set(hash, new Map([[placeId, record]]));
    else places.set(placeId, record);
  }

  #forget(): void {
    this.#records.clear();
    this.#size = 0;
  }

  #freshenOnce(): void {
    if (this.#asked === undefined) {
      this.#asked = this.#freshen();
      queueMicrotask(() => {
        this.#asked = undefined;
      });
    }
    if ('failure' in this.#asked) throw this.#asked.failure;
  }

  #freshen(): { failure?: unknown } {
    try {
      const token = this.#source.changeToken();
      if (token !== this.#token) this.#forget();
      this.#token = token;
      return {};
    } catch (failure) {
      return { failure };
    }
  }
}
