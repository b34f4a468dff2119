import { openRankd, type Rankd } from './daemon.ts';
import { addKeys, fill, type Size } from './fill.ts';

/** Enough for a name, a key and a ranker of each change; the changes take a month. */
const size: Size = { keys: 1_000, changes: 5_000_000 };
const allKeys = 1_000_000;

/** A database that is filled once, as that takes minutes: `search` looks into it, `scale` adds keys. Disposal removes it. */
export class FullDatabase implements AsyncDisposable {
  #filled: Promise<Rankd> | undefined;

  /** Not while a daemon runs on it. */
  filled(): Promise<Rankd> {
    this.#filled ??= openFilled();
    return this.#filled;
  }

  /** The same with a million keys, and the secrets of some. To be asked once. */
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
