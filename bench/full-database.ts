import { openRankd, type Rankd } from './daemon.ts';
import { addKeys, fill, type Size } from './fill.ts';

/** The initial size: a month of changes, made by a thousand keys. `withAllKeys` adds more keys. */
const size: Size = { keys: 1_000, changes: 5_000_000 };
const allKeys = 1_000_000;

/** A full database for `search` and `scale`, which share it because filling it takes minutes. Disposal removes it. */
export class FullDatabase implements AsyncDisposable {
  #filled: Promise<Rankd> | undefined;

  filled(): Promise<Rankd> {
    this.#filled ??= openFilled();
    return this.#filled;
  }

  /**
   * Adds keys until there are a million, and returns the secrets of ten of them. Call it only once, and not while a
   * daemon is running.
   */
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
