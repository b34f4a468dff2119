import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TempDir } from './temp-dir.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A copy of the built package in a temporary folder, as if installed there, with a home folder next to it. */
export class CopyOfRankd implements Disposable {
  readonly #parent = new TempDir();
  readonly folder = join(this.#parent.path, 'package');
  readonly home = join(this.#parent.path, 'home');
  readonly binary = join(this.folder, 'bin/rankd.js');
  readonly dist = join(this.folder, 'dist');
  /** The folder of Node.js's compile cache, which the first start creates. */
  readonly cache = join(this.home, '.cache/rankd');

  constructor({ packages = false } = {}) {
    mkdirSync(join(this.folder, 'node_modules'), { recursive: true });
    mkdirSync(this.home);
    for (const part of ['bin', 'dist', 'package.json'])
      cpSync(join(root, part), join(this.folder, part), { recursive: true });
    if (packages)
      symlinkSync(join(root, 'node_modules/better-sqlite3'), join(this.folder, 'node_modules/better-sqlite3'));
  }

  [Symbol.dispose](): void {
    this.#parent[Symbol.dispose]();
  }
}
