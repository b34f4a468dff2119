import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A directory that is removed on disposal; by default, a new temporary one. */
export class TempDir implements Disposable {
  readonly path: string;

  constructor(path = mkdtempSync(join(tmpdir(), 'rankd-test-'))) {
    this.path = path;
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Creates a directory that is removed at the end of the test, and returns its path. */
export function tempDir(): string {
  const dir = new TempDir();
  onTestFinished(() => dir[Symbol.dispose]());
  return dir.path;
}

/** e.g. `600` */
export function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}
