import { join } from 'node:path';

/** Where the daemon of a data directory answers the commands beside it. */
export function socketPath(dataDir: string): string {
  return join(dataDir, 'daemon.sock');
}
