import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A directory that is removed with its scope: a new one by default. */
export class TempDir implements Disposable {
  readonly path: string;

  constructor(path = mkdtempSync(join(tmpdir(), 'rankd-test-'))) {
    this.path = path;
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** The path of a directory that is removed at the end of the test. */
export function tempDir(): string {
  const dir = new TempDir();
  onTestFinished(() => dir[Symbol.dispose]());
  return dir.path;
}

/** Permission bits, e.g. `600`. */
export function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}
