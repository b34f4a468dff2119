import { join } from 'node:path';

/** Names the operator who asks, percent-encoded. Whoever can open the socket could write the audit, too. */
export const operatorHeader = 'x-rankd-operator';

/** Where the daemon of a data directory answers the commands beside it. */
export function socketPath(dataDir: string): string {
  return join(dataDir, 'daemon.sock');
}
