import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { isInDataDir, isOnReadOnlyFileSystem } from '../base/data-dir.ts';
import { requireSpace } from '../base/files.ts';
import { hostAndPort } from '../base/net.ts';
import { crypto, https } from '../base/node-modules.ts';
import { ownerOf, type System, thisSystem } from '../base/system.ts';
import { loadSqlite } from '../stores/engine.ts';
import { examined, type Finding, fail, ok, warn } from '../usecases/doctor/finding.ts';
import { openGroupIn } from './windows-access.ts';

const minFreeMiB = 200;
const maxSkewMs = 30_000;

/**
 * Features that can be missing in any version, because of a custom build, another runtime, or an option such as
 * --jitless.
 */
const features: ReadonlyArray<[name: string, works: () => unknown]> = [
  ['fetch (for calls to Roblox)', () => typeof fetch === 'function' && 'WebAssembly' in globalThis],
  ['encryption (TLS)', () => crypto().getRandomValues(new Uint8Array(1)) && https().Agent],
  ['resource management (Symbol.asyncDispose)', () => typeof Symbol.asyncDispose === 'symbol'],
  ['promises with resolvers', () => typeof Promise.withResolvers === 'function'],
  ['text segmentation (Intl)', () => typeof Intl.Segmenter === 'function'],
];

export function nodeFindings(version: string): Finding[] {
  const lacking = features.flatMap(([name, works]) => (isTrue(works) ? [] : [name]));
  const fix = 'unset NODE_OPTIONS, or install the current LTS release from https://nodejs.org';
  if (lacking.length > 0) return [fail('node', `Node.js ${version} lacks ${lacking.join(', ')}`, fix)];
  loadSqlite();
  return [ok('node', `Node.js ${version}`)];
}

function isTrue(works: () => unknown): boolean {
  try {
    return Boolean(works());
  } catch {
    return false;
  }
}

/** Windows has ACLs instead of modes. */
interface AccessSources {
  system?: System;
  readAccessList(path: string): Promise<string | undefined>;
}

export async function dataDirFindings(dataDir: string, sources: AccessSources): Promise<Finding[]> {
  if (!existsSync(dataDir)) {
    return [
      warn('data', `${dataDir} does not exist yet`, 'rankd serve, or any command that stores something, creates it'),
    ];
  }
  if (!statSync(dataDir).isDirectory())
    return [fail('data', `${dataDir} is not a directory`, 'name one with --data-dir')];
  const access = await accessFindings(dataDir, sources);
  const room = access.some(({ grade }) => grade === 'FAIL') ? [] : await examined('disk', () => roomFindings(dataDir));
  return [...access, fileSystemFinding(dataDir), ...room];
}

async function accessFindings(
  dataDir: string,
  { system = thisSystem, readAccessList }: AccessSources,
): Promise<Finding[]> {
  isInDataDir(dataDir, 'any-file'); // throws if this user can't access the directory
  const files = readdirSync(dataDir).map((name) => join(dataDir, name));
  const paths = [dataDir, ...files];
  if (isOnReadOnlyFileSystem(dataDir)) {
    const fix = 'mount it read-write, or copy the directory to a writable disk and name the copy with --data-dir';
    return [fail('data', `${dataDir} is on a read-only file system`, fix)];
  }
  const closed = paths.find((path) => !isWritable(path));
  if (closed !== undefined) {
    const { quote } = system;
    const isOthersFile = system.hasModes && ownerOf(closed) !== ownerOf(dataDir);
    const fix = isOthersFile
      ? `sudo chown ${quote(ownerOf(dataDir).replace('#', ''))} ${quote(closed)}` // chown takes ids without #
      : `run rankd as the user that owns ${dataDir}`;
    return [fail('data', `this user has no permission to write to ${closed}`, fix)];
  }
  if (!system.hasModes) return listFindings(dataDir, { system, list: await readAccessList(dataDir) });
  const open = paths.find((path) => (statSync(path).mode & 0o077) !== 0);
  if (open !== undefined) {
    return [
      fail('data', `other users of this machine can access ${open}`, thisSystem.commands.restrictFolder(dataDir)),
    ];
  }
  return [ok('data', `${dataDir} is private and writable`)];
}

/** Checks only the folder's ACL, because its files inherit it. */
function listFindings(dataDir: string, { system, list }: { system: System; list: string | undefined }): Finding[] {
  const group = list === undefined ? undefined : openGroupIn(list);
  const close = system.commands.restrictFolder(dataDir);
  if (group !== undefined) return [warn('data', `${group} can access ${dataDir}`, close)];
  return [ok('data', `${dataDir} is ${list === undefined ? '' : 'private and '}writable`)];
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function fileSystemFinding(dataDir: string): Finding {
  const shared = thisSystem.sharedFileSystem(dataDir, statfsSync(dataDir).type);
  if (shared === undefined) return ok('file system', 'not a network file system that rankd recognizes');
  return warn(
    'file system',
    `${dataDir} is on ${shared}, where a SQLite database can be damaged`,
    'move it to a local disk',
  );
}

/** Checks the free disk space. Throws if a test write fails, which also detects quotas and failing disks. */
function roomFindings(dataDir: string): Finding[] {
  requireSpace(dataDir);
  const { bavail, bsize } = statfsSync(dataDir);
  const freeMiB = Math.floor((bavail * bsize) / 2 ** 20);
  if (freeMiB >= minFreeMiB) return [ok('disk', `${freeMiB} MiB free`)];
  return [warn('disk', `only ${freeMiB} MiB free on the disk of ${dataDir}`, 'free up space on it')];
}

/** `isRunning` is undefined if rankd could not find out whether the daemon is running. */
export async function portFindings(
  { host, port }: { host: string; port: number },
  isRunning: boolean | undefined,
): Promise<Finding[]> {
  if (isRunning) return [ok('port', 'a daemon is running on this data directory')];
  const where = hostAndPort({ host, port });
  const code = await whyNotFree({ host, port });
  if (code === undefined) return [ok('port', `${where} is free`)];
  if (code === 'EADDRINUSE' && isRunning === undefined) {
    return [
      warn(
        'port',
        `${where} is in use, perhaps by this rankd`,
        'fix the problem with the data directory first, then run rankd doctor again',
      ),
    ];
  }
  if (code === 'EADDRINUSE') {
    return [fail('port', `another program listens on ${where}`, 'stop it, or set server.port to a different port')];
  }
  const fix =
    code === 'EACCES'
      ? `set server.port to ${port < 1024 ? '1024 or higher' : 'a different port'}`
      : 'check server.port, and set server.host to 127.0.0.1, or to 0.0.0.0 for all addresses';
  return [fail('port', `rankd can't listen on ${where} (${code})`, fix)];
}

function whyNotFree(where: { host: string; port: number }): Promise<string | undefined> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', ({ code = 'unknown' }: NodeJS.ErrnoException) => resolve(code));
    probe.listen(where, () => probe.close(() => resolve(undefined)));
  });
}

/** `skewMs` is positive if this machine's clock is ahead of Roblox's, and undefined if unknown. */
export function clockFindings(skewMs: number | undefined): Finding[] {
  if (skewMs === undefined) return [];
  const skewSeconds = Math.round(Math.abs(skewMs) / 1000);
  if (Math.abs(skewMs) < maxSkewMs) return [ok('clock', "agrees with Roblox's clock")];
  const direction = skewMs > 0 ? 'ahead of' : 'behind';
  return [warn('clock', `${skewSeconds} seconds ${direction} Roblox`, thisSystem.commands.synchronizeClock())];
}
