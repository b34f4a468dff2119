import { statSync } from 'node:fs';

/** Files that this process has open, and whether their paths still lead to them. */
export class OpenedFiles {
  readonly #paths: readonly string[];
  readonly #identities: readonly string[];

  constructor(paths: readonly string[]) {
    this.#paths = paths;
    this.#identities = paths.map(identityOf);
  }

  /** True once a file was removed, or another one took its place. */
  wereReplaced(): boolean {
    return this.#paths.some((path, index) => identityOf(path) !== this.#identities[index]);
  }
}

/** Device and inode, by which the system tells files apart. */
function identityOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? 'none' : `${stats.dev}:${stats.ino}`;
}
