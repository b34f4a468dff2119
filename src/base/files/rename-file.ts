import { renameSync } from 'node:fs';
import { codeOf } from '../error-code.ts';
import { type System, thisSystem } from '../system.ts';

/**
 * Gives a file its name, in the place of another one that may have it. Where another program can keep that one from being replaced
 * as long as it looks at it, this waits for at most a second, and blocks the thread meanwhile. Throws what the system throws.
 */
export function renameFile(
  from: string,
  to: string,
  { system = thisSystem, rename = renameSync }: { system?: System; rename?: typeof renameSync } = {},
): void {
  for (let tries = 1; ; tries += 1) {
    try {
      rename(from, to);
      return;
    } catch (error) {
      if (tries === maxTries || !system.passingRenameErrors.includes(codeOf(error))) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryEveryMs);
    }
  }
}

const maxTries = 20;
const retryEveryMs = 50;
