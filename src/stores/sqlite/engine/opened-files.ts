import { type FSWatcher, type Stats, statSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { thisSystem } from '../../../base/system.ts';

/** Files that this process works on, and whether their paths still lead to them, no shorter than they were. */
export class OpenedFiles {
  readonly #seen = new Map<string, Stats | undefined>();
  #watcher: FSWatcher | undefined;
  #isWatching = false;
  #mayDiffer = false;

  /** A file of rankd's only grows while it is open. */
  add(path: string): void {
    this.#seen.set(path, look(path));
  }

  remove(path: string): void {
    this.#seen.delete(path);
  }

  /**
   * From here on `mayDiffer` tells when to look. If the system tells of a removed or cut file before it tells of anything that
   * was sent afterwards, a daemon need not look before each answer. Elsewhere, and if the system has no watch left, it must.
   */
  watch(): void {
    const [path] = this.#seen.keys();
    this.#isWatching = true;
    this.#mayDiffer = true;
    if (path === undefined || !thisSystem.tellsOfHarmFirst) return;
    try {
      const watcher = watch(dirname(path), { persistent: false }, () => {
        this.#mayDiffer = true;
      });
      watcher.on('error', () => this.#unwatch());
      this.#watcher = watcher;
    } catch {
      this.#unwatch();
    }
  }

  /** False as long as a watch shows that nothing was done to them since `firstHarmed`. It costs nothing to ask. */
  get mayDiffer(): boolean {
    return this.#mayDiffer;
  }

  /** The path of a file that was removed, replaced or cut, if there is one. */
  firstHarmed(): string | undefined {
    this.#mayDiffer = this.#isWatching && this.#watcher === undefined;
    for (const [path, before] of this.#seen) {
      const now = look(path);
      if (!isSameOrGrown(before, now)) return path;
      this.#seen.set(path, now);
    }
    return undefined;
  }

  close(): void {
    this.#isWatching = false;
    this.#unwatch();
  }

  #unwatch(): void {
    this.#mayDiffer = this.#isWatching;
    this.#watcher?.close();
    this.#watcher = undefined;
  }
}

function look(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

/** Device and inode are what the system tells files apart by. */
function isSameOrGrown(before: Stats | undefined, now: Stats | undefined): boolean {
  if (before === undefined || now === undefined) return before === now;
  return now.dev === before.dev && now.ino === before.ino && now.size >= before.size;
}
