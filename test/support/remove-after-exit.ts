import { type ChildProcess, spawn } from 'node:child_process';

/**
 * Starts a shell that removes a folder a second after this process ends, even if it is killed, or after it closes the
 * shell's input.
 */
export function removeAfterExit(folder: string): ChildProcess {
  const remover = spawn('sh', ['-c', 'cat >/dev/null; sleep 1; rm -rf "$1"', 'sh', folder], {
    ...{ cwd: '/', stdio: ['pipe', 'ignore', 'ignore'], detached: true },
  });
  remover.unref();
  (remover.stdin as unknown as { unref(): void }).unref();
  return remover;
}
