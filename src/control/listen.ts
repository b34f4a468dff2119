import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { codeOf } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { crypto, http } from '../base/node-modules.ts';
import { thisSystem } from '../base/system.ts';
import {
  addressIn,
  addressName,
  type Control,
  changeHeader,
  type LinkRequest,
  maxHours,
  operatorHeader,
  sessionHeader,
  socketName,
  usualHours,
} from './control.ts';

export interface Place {
  dataDir: string;
  /** Includes the variables that name folders for the socket. */
  env: Record<string, string | undefined>;
}

/**
 * Accepts requests from commands on a socket in the data directory or, if that can't contain one, in a private
 * temporary folder; on Windows, on a named pipe. Requires no key, because only rankd's user and administrators can
 * write to the socket. (A pipe's default ACL allows others at most to read:
 * https://learn.microsoft.com/windows/win32/ipc/named-pipe-security-and-access-rights.) Replaces an existing socket:
 * the caller holds the daemon's lock, so a previous daemon must have left the socket behind. Logs a warning if it can't
 * create a socket or store the socket's path.
 */
export async function listenForCommands(
  { log, ...place }: Place & { log: Logger },
  control: Control,
): Promise<AsyncDisposable> {
  const server = http().createServer((request, response) => {
    answer(control, request, response).catch((error) => {
      log.error({ err: error }, "a command's request could not be answered");
      response.writeHead(500).end();
    });
  });
  const { dataDir } = place;
  removeOld(dataDir);
  const { path, problem } = await listenSomewhere(server, place);
  const whyUnknown = path === undefined ? problem : whyNotStored(dataDir, path);
  if (whyUnknown !== undefined) log.warn(`${whyUnknown}, so commands can't reach this daemon`);
  return { [Symbol.asyncDispose]: path === undefined ? async () => undefined : closing(server, path, dataDir) };
}

/** Stores the socket's path unless the socket is in the data directory. If that fails, returns the reason. */
function whyNotStored(dataDir: string, path: string): string | undefined {
  if (dirname(path) === dataDir) return undefined;
  const file = join(dataDir, addressName);
  try {
    writeFileSync(file, `${path}\n`, { mode: 0o600 });
    return undefined;
  } catch (error) {
    return `${file} can't be written (${codeOf(error)})`;
  }
}

/** Returns the reason why a daemon can't create a socket; `undefined` if it can. Does not touch an existing socket. */
export async function whyNoSocket(place: Place): Promise<string | undefined> {
  const server = createServer();
  // as long as the real name, because the length of a socket's path is limited
  const { path, problem } = await listenSomewhere(server, { ...place, name: 'daemon.test' });
  if (path === undefined) return problem;
  server.close();
  await once(server, 'close');
  removeFolderOf(path);
  return undefined;
}

async function listenSomewhere(
  server: Server,
  { dataDir, env, name = socketName }: Place & { name?: string },
): Promise<{ path: string; problem?: never } | { path?: never; problem: string }> {
  const tried: string[] = [];
  for (const parent of parentsOf(dataDir, env)) {
    let path: string | undefined;
    try {
      path = pathIn(parent, { dataDir, name });
      await listenOn(server, path);
      return { path };
    } catch (error) {
      if (path !== undefined) removeFolderOf(path);
      tried.push(`${parent} (${codeOf(error) || String(error)})`);
    }
  }
  return { problem: `no socket can be created in ${tried.join(' or ')}` };
}

/** Returns the folders that could contain the socket, best first. */
function parentsOf(dataDir: string, env: Place['env']): string[] {
  if (!thisSystem.hasSocketFiles) return ['\\\\.\\pipe'];
  const others = [env['RUNTIME_DIRECTORY']?.split(':')[0], env['XDG_RUNTIME_DIR'], tmpdir()];
  return [dataDir, ...new Set(others.filter((folder) => folder !== undefined && isAbsolute(folder)))] as string[];
}

/** Outside the data directory, creates a private folder with a random name for the socket. */
function pathIn(parent: string, { dataDir, name }: { dataDir: string; name: string }): string {
  if (!thisSystem.hasSocketFiles) return `${parent}\\rankd-${crypto().randomBytes(16).toString('hex')}`;
  return join(parent === dataDir ? dataDir : mkdtempSync(join(parent, folderPrefix)), name);
}

const folderPrefix = 'rankd-socket-';

/** The limit of macOS; Linux allows 107 bytes. Node.js 22.14 silently truncates longer paths. */
const maxPathBytes = 103;

async function listenOn(server: Server, path: string): Promise<void> {
  if (thisSystem.hasSocketFiles && Buffer.byteLength(path) > maxPathBytes)
    throw Object.assign(new Error('the path is too long for a socket'), { code: 'ENAMETOOLONG' });
  server.listen(path);
  await once(server, 'listening');
  if (thisSystem.hasSocketFiles) chmodSync(path, 0o600);
}

/** Removes the socket of a daemon that was killed. */
function removeOld(dataDir: string): void {
  const address = addressIn(dataDir);
  rmSync(join(dataDir, socketName), { force: true });
  rmSync(join(dataDir, addressName), { force: true });
  if (address !== undefined) removeFolderOf(address);
}

function removeFolderOf(socket: string): void {
  if (!basename(dirname(socket)).startsWith(folderPrefix)) return;
  try {
    rmSync(dirname(socket), { recursive: true, force: true });
  } catch {
    return; // the folder belongs to another user
  }
}

/**
 * Returns a function that closes the server. If another daemon has replaced the socket, the server stays open until the
 * process ends, because closing it would remove the other daemon's file.
 */
function closing(server: HttpServer, path: string, dataDir: string): () => Promise<void> {
  const ours = numberOf(path);
  return async () => {
    server.unref();
    server.closeAllConnections();
    if (!server.listening || numberOf(path) !== ours) return;
    server.close();
    await once(server, 'close');
    if (addressIn(dataDir) === path) rmSync(join(dataDir, addressName), { force: true });
    removeFolderOf(path);
  };
}

/** Returns the file's inode number, which reveals whether the file was replaced. Named pipes have none. */
function numberOf(path: string): number | undefined {
  if (!thisSystem.hasSocketFiles) return undefined;
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

const operations = {
  'GET /status': { name: 'status', about: () => '' },
  'GET /identity': { name: 'identity', about: () => '' },
  'POST /reload': { name: 'reload', about: operatorOf },
  'POST /relearn': { name: 'relearn', about: operatorOf },
  'POST /late-read': { name: 'lateRead', about: ({ headers }) => String(headers[changeHeader]) },
  'POST /dashboard': { name: 'dashboardLink', about: linkOf },
  'POST /dashboard/logout': { name: 'dashboardLogout', about: operatorOf },
} as const satisfies Record<
  string,
  { name: keyof Control; about: (request: IncomingMessage) => string | LinkRequest | undefined }
>;

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
  const json = JSON.stringify(await control[operation.name](about as string & LinkRequest));
  response.setHeader('content-type', 'application/json; charset=utf-8');
  response.end(json);
}

function linkOf(request: IncomingMessage): LinkRequest | undefined {
  const by = operatorOf(request);
  const [, hours, view] = /^(\d{1,3})( view)?$/.exec(String(request.headers[sessionHeader] ?? usualHours)) ?? [];
  if (by === undefined || hours === undefined || Number(hours) < 1 || Number(hours) > maxHours) return undefined;
  return { by, isViewOnly: view !== undefined, hours: Number(hours) };
}

const maxOperatorLength = 200;

function operatorOf({ headers }: IncomingMessage): string | undefined {
  try {
    return decodeURIComponent(String(headers[operatorHeader] ?? 'daemon')).slice(0, maxOperatorLength);
  } catch {
    return undefined;
  }
}
