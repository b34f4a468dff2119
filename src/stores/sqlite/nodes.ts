import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { privateFile } from '../../base/data-dir.ts';
import { newId } from '../../core/api-key.ts';
import type { OpenedFiles } from './engine/opened-files.ts';
import { isNodeName } from './files/daemon-lock.ts';
import { type ProcessLock, takeLock } from './files/process-lock.ts';

/**
 * The nodes of one database: each handle is one from its first write that others must know of until it is closed or its
 * process ends. A node holds the lock of a file of its own, so a node that is stopped for a while is not gone.
 */
export class Nodes {
  readonly #dataDir: string;
  readonly #files: Pick<OpenedFiles, 'add' | 'remove'>;
  #mine: { id: string; lock: ProcessLock } | undefined;

  /** `files`: what this handle can't work without, to which the file of its lock is added. */
  constructor(database: string, files: Pick<OpenedFiles, 'add' | 'remove'>) {
    this.#dataDir = dirname(database);
    this.#files = files;
  }

  /** The id of this handle's node, which begins with the first call. Throws as `openStore`. */
  get id(): string {
    this.#mine ??= this.#join();
    return this.#mine.id;
  }

  /** The same; `undefined` if it has not begun. */
  get idIfBegun(): string | undefined {
    return this.#mine?.id;
  }

  /** True once a node's process has ended or its handle was closed, and then for ever. What is left of it is removed. */
  isGone(id: string): boolean {
    if (id === this.#mine?.id) return false;
    return this.#clearAway(nameOf(id));
  }

  /** Removes what nodes left behind that were killed while they held nothing. */
  clearAway(): void {
    for (const name of readdirSync(this.#dataDir)) if (isNodeName(name)) this.#clearAway(name);
  }

  close(): void {
    if (this.#mine === undefined) return;
    this.#files.remove(this.#fileOf(this.#mine.id));
    this.#mine.lock.release({ remove: true });
    this.#mine = undefined;
  }

  /**
   * A process that cleans up takes the lock first, so if the file still exists after this node took its lock, it stays
   * this node's.
   */
  #join(): { id: string; lock: ProcessLock } {
    for (;;) {
      const id = newId('node');
      const file = privateFile(this.#dataDir, nameOf(id));
      const lock = takeLock(file);
      if (lock !== undefined && existsSync(file)) {
        this.#files.add(file);
        return { id, lock };
      }
      lock?.release();
    }
  }

  #fileOf(id: string): string {
    return join(this.#dataDir, nameOf(id));
  }

  #clearAway(name: string): boolean {
    const file = join(this.#dataDir, name);
    if (this.#mine !== undefined && name === nameOf(this.#mine.id)) return false;
    if (!existsSync(file)) return true;
    const lock = takeLock(file);
    lock?.release({ remove: true });
    return lock !== undefined;
  }
}

function nameOf(id: string): string {
  return `${id}.lock`;
}
