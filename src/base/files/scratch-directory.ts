import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const prefix = 'rankd-scratch-';

/** A data directory for a command that must not change anything. It is removed with its scope. */
export class ScratchDirectory implements Disposable {
  readonly path: string;

  constructor(parent = tmpdir()) {
    this.path = mkdtempSync(join(parent, prefix));
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Removes what a command that was killed has left in a directory. */
export function removeLeftScratch(parent: string): void {
  for (const name of readdirSync(parent))
    if (name.startsWith(prefix)) rmSync(join(parent, name), { recursive: true, force: true });
}
