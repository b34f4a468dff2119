import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A data directory for a command that must not change anything. It is removed with its scope. */
export class ScratchDirectory implements Disposable {
  readonly path: string;

  constructor(parent = tmpdir()) {
    this.path = mkdtempSync(join(parent, 'rankd-scratch-'));
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
