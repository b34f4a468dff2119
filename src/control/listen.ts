import { once } from 'node:events';
import { chmodSync, rmSync, statSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from '../base/log.ts';
import { http } from '../base/node-modules.ts';
import { thisSystem } from '../base/system.ts';
import { type Control, changeHeader, controlPath, operatorHeader } from './control.ts';

/**
 * Answers on a socket in the data directory, or on Windows on a named pipe. Only rankd's user and administrators can write to it, so nobody
 * is asked for a key. (A pipe's default access list, which Node.js leaves as it is, lets others read at most:
 * https://learn.microsoft.com/windows/win32/ipc/named-pipe-security-and-access-rights.) The caller holds the daemon's lock: a socket that is there was left by an earlier daemon and is replaced. A daemon that can't make one serves on.
 */
export async function listenForCommands(
  { dataDir, log }: { dataDir: string; log: Logger },
  control: Control,
): Promise<AsyncDisposable> {
  const path = controlPath(dataDir);
  const server = http().createServer((request, response) => {
    answer(control, request, response).catch((error) => {
      log.error({ err: error }, 'a command could not be answered');
      response.writeHead(500).end();
    });
  });
  if (thisSystem.hasSocketFiles) rmSync(path, { force: true });
  server.listen(path);
  try {
    await once(server, 'listening');
    if (thisSystem.hasSocketFiles) chmodSync(path, 0o600);
  } catch (error) {
    log.warn({ err: error }, 'no socket can be made in the data directory, so no command can ask this daemon');
  }
  const ours = numberOf(path);
  return {
    async [Symbol.asyncDispose]() {
      server.unref();
      server.closeAllConnections();
      if (!server.listening || numberOf(path) !== ours) return; // to close it removes whatever has its path by now
      server.close();
      await once(server, 'close');
    },
  };
}

/** By which the file system tells files apart; a named pipe has none. */
function numberOf(path: string): number | undefined {
  if (!thisSystem.hasSocketFiles) return undefined;
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

/** Reading changes nothing; whatever does is a POST. */
const operations = {
  'GET /status': { name: 'status', about: () => '' },
  'GET /identity': { name: 'identity', about: () => '' },
  'POST /reload': { name: 'reload', about: operatorOf },
  'POST /look': { name: 'look', about: ({ headers }) => String(headers[changeHeader]) },
  'POST /dashboard': { name: 'dashboardLink', about: operatorOf },
  'POST /dashboard/logout': { name: 'dashboardLogout', about: operatorOf },
} as const satisfies Record<string, { name: keyof Control; about: (request: IncomingMessage) => string | undefined }>;

async function answer(control: Control, request: IncomingMessage, response: ServerResponse): Promise<void> {
  request.resume();
  const asked = `${request.method} ${request.url}`;
  const operation = Object.entries(operations).find(([name]) => name === asked)?.[1];
  if (operation === undefined) {
    response.writeHead(404).end();
    return;
  }
  const about = operation.about(request);
  if (about === undefined) {
    response.writeHead(400).end();
    return;
  }
  const told = JSON.stringify(await control[operation.name](about));
  response.setHeader('content-type', 'application/json; charset=utf-8');
  response.end(told);
}

const maxOperatorLength = 200;

/** The operator who asks; `undefined` if the header is not percent-encoded, as it must be for names that no header may hold. */
function operatorOf({ headers }: IncomingMessage): string | undefined {
  try {
    return decodeURIComponent(String(headers[operatorHeader] ?? 'daemon')).slice(0, maxOperatorLength);
  } catch {
    return undefined;
  }
}
