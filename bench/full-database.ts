import { openRankd, type Rankd } from './daemon.ts';
import { addKeys, fill, type Size } from './fill.ts';

/** Enough to give each change a name, a key and a ranker; the changes take a month. */
const size: Size = { keys: 1_000, changes: 5_000_000 };
const allKeys = 1_000_000;

/**
 * A database that is filled only once, because that takes minutes: `search` reads it, `scale` adds keys. Disposal
 * removes it.
 */
export class FullDatabase implements AsyncDisposable {
  #filled: Promise<Rankd> | undefined;

  /** Must not be called while a daemon runs on it. */
  filled(): Promise<Rankd> {
    this.#filled ??= openFilled();
    return this.#filled;
  }

  /** The same with a million keys, and the secrets of some. May be called once. */
  async withAllKeys(): Promise<{ full: Rankd; secrets: string[] }> {
    const full = await this.filled();
    return { full, secrets: addKeys(full, { after: size.keys, count: allKeys - size.keys }) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.#filled)?.[Symbol.asyncDispose]();
  }
}

async function openFilled(): Promise<Rankd> {
  const rankd = await openRankd();
  fill(rankd, size);
  return rankd;
}
