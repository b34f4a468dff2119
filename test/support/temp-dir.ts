import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A directory that is gone when the test is. */
export function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'rankd-test-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Permission bits, e.g. `600`. */
export function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}
