import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isInDataDir, privateFile } from '../../../base/data-dir.ts';
import { RankdError } from '../../../base/errors.ts';
import { isLockTaken, type ProcessLock, takeLock } from './process-lock.ts';

/**
 * Makes this process the one daemon of a data directory until it is disposed or the process ends.
 * Throws `conflict` if another daemon has it, and as `openStore` if the directory can't be used.
 */
export async function acquireDaemonLock(dataDir: string): Promise<AsyncDisposable> {
  const lock = takeLock(privateFile(dataDir, daemonLockName), { timeoutMs: lookTimeoutMs });
  if (lock === undefined) throw alreadyRunning(dataDir);
  return {
    async [Symbol.asyncDispose]() {
      lock.release();
    },
  };
}

/** The daemon's lock for a command that is to be alone; `undefined` if a daemon works on this data directory, or a command changes a rank. */
export function lockOutDaemons(dataDir: string): ProcessLock | undefined {
  const isNodeAlive = (name: string) => isNodeName(name) && isLockTaken(join(dataDir, name));
  if (readdirSync(dataDir).some(isNodeAlive)) return undefined;
  return takeLock(privateFile(dataDir, daemonLockName), { timeoutMs: lookTimeoutMs });
}

/** Matches the file whose lock a node holds. */
export function isNodeName(name: string): boolean {
  return /^node_\w+\.lock$/.test(name);
}

/** Whether a daemon works on this data directory right now, in any process. Throws `no_permission` if this user may not look. */
export async function isDaemonRunning(dataDir: string): Promise<boolean> {
  return isInDataDir(dataDir, daemonLockName) && isLockTaken(join(dataDir, daemonLockName));
}

/** Where a daemon on PostgreSQL notes which node it is: the next one of this directory takes its place at once. */
export const nodeFileName = 'rankd.node';

/** The file whose lock a daemon holds. */
export const daemonLockName = 'daemon.lock';

/** Looking whether a daemon runs holds a shared lock for an instant; a daemon that starts just then waits for it. */
const lookTimeoutMs = 250;

function alreadyRunning(dataDir: string): RankdError {
  return new RankdError('conflict', `Another rankd daemon is running on the data directory ${dataDir}.`, {
    hint: 'stop the other daemon first, or name another directory with --data-dir',
  });
}
