import { once } from 'node:events';
import { chmodSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Logger } from '../log.ts';
import type { DaemonStatus } from './daemon-status.ts';
import { socketPath } from './socket-path.ts';

/**
 * Answers on a socket in the data directory, which only rankd's user can open: so nobody needs to be asked for a key. Held
 * by the one daemon of the directory; a socket that an earlier one left is replaced. A daemon that can't have one serves on.
 */
export async function listenForCommands(
  { dataDir, log }: { dataDir: string; log: Logger },
  status: () => DaemonStatus,
): Promise<AsyncDisposable> {
  const path = socketPath(dataDir);
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader('content-type', 'application/json; charset=utf-8');
    response.end(JSON.stringify(status()));
  });
  rmSync(path, { force: true });
  server.listen(path);
  try {
    await once(server, 'listening');
    chmodSync(path, 0o600);
  } catch (error) {
    log.warn({ err: error }, 'no socket can be made in the data directory, so `rankd status` cannot ask this daemon');
  }
  return {
    async [Symbol.asyncDispose]() {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
