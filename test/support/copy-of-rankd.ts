import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The built package in a folder of its own, as it is after it was installed. */
export class CopyOfRankd implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'rankd-copy-'));
  readonly binary = join(this.folder, 'bin/rankd.js');
  readonly dist = join(this.folder, 'dist');
  /** What was compiled, once anything was kept. */
  readonly cache = join(this.dist, '.cache');

  /** `packages`: whether what it depends on is there as well. */
  constructor({ packages = false } = {}) {
    for (const part of ['bin', 'dist', 'package.json'])
      cpSync(join(root, part), join(this.folder, part), { recursive: true });
    rmSync(this.cache, { recursive: true, force: true });
    if (packages) symlinkSync(join(root, 'node_modules'), join(this.folder, 'node_modules'));
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true });
  }
}
