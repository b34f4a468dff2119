import { once } from 'node:events';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Logger } from '../base/log.ts';
import type { ReloadOutcome } from '../daemon/live-config.ts';
import type { DaemonStatus } from './daemon-status.ts';
import { operatorHeader, socketPath } from './socket-path.ts';

/** What a daemon does for the commands beside it. */
export interface Control {
  status(): DaemonStatus;
  /** `by`: whom the audit names. */
  reload(by: string): Promise<ReloadOutcome>;
}

/**
 * Answers on a socket in the data directory, which only rankd's user can open: so nobody needs to be asked for a key. Held
 * by the one daemon of the directory; a socket that an earlier one left is replaced. A daemon that can't have one serves on.
 */
export async function listenForCommands(
  { dataDir, log }: { dataDir: string; log: Logger },
  control: Control,
): Promise<AsyncDisposable> {
  const path = socketPath(dataDir);
  const server = createServer((request, response) => {
    answer(control, request, response).catch((error) => {
      log.error({ err: error }, 'a command could not be answered');
      response.writeHead(500).end();
    });
  });
  rmSync(path, { force: true });
  server.listen(path);
  try {
    await once(server, 'listening');
    chmodSync(path, 0o600);
  } catch (error) {
    log.warn({ err: error }, 'no socket can be made in the data directory, so no command can ask this daemon');
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

/** Reading changes nothing; whatever does is a POST. */
const operations = { 'GET /status': 'status', 'POST /reload': 'reload' } as const;

async function answer(control: Control, request: IncomingMessage, response: ServerResponse): Promise<void> {
  request.resume();
  const asked = `${request.method} ${request.url}`;
  const operation = Object.entries(operations).find(([name]) => name === asked)?.[1];
  if (operation === undefined) {
    response.writeHead(404).end();
    return;
  }
  const by = operatorOf(request);
  if (by === undefined) {
    response.writeHead(400).end();
    return;
  }
  const told = JSON.stringify(await control[operation](by));
  response.setHeader('content-type', 'application/json; charset=utf-8');
  response.end(told);
}

const maxOperatorLength = 200;

/** Percent-encoded, as names may hold what headers may not; `undefined` where it is not that. */
function operatorOf({ headers }: IncomingMessage): string | undefined {
  try {
    return decodeURIComponent(String(headers[operatorHeader] ?? 'daemon')).slice(0, maxOperatorLength);
  } catch {
    return undefined;
  }
}
