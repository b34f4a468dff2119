import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ErrorCode } from '../base/errors.ts';
import { ownUid, thisSystem } from '../base/system.ts';
import type { ChangedSettings } from '../config/compare.ts';
import type { DaemonStatus } from '../usecases/upkeep/status-document.ts';

/** The daemon's operations for commands. Results are sent as JSON. */
export interface Control {
  status(): Promise<DaemonStatus>;
  /** Returns the secret with which the daemon proves its identity (`src/core/proof.ts`). */
  identity(): Promise<{ identity: string }>;
  /** Reloads the configuration. `by`: the actor recorded in the audit log. */
  reload(by: string): Promise<ReloadOutcome>;
  /** Reloads the configuration and re-resolves all role names. */
  relearn(by: string): Promise<ReloadOutcome>;
  /** Verifies, with a late read, a change that a command reported as applied. */
  lateRead(changeId: string): Promise<LateReadOutcome>;
  /** Creates a dashboard link, and starts serving the dashboard if necessary. */
  dashboardLink(asked: AskedLink): Promise<LinkOutcome>;
  /** Ends all dashboard sessions. `by`: the actor recorded in the audit log. */
  dashboardLogout(by: string): Promise<{ sessions: number }>;
}

export interface AskedLink {
  /** The actor recorded in the audit log. */
  by: string;
  /** True for a session that can't change anything. */
  isViewOnly: boolean;
  /** The session's length. */
  hours: number;
}

/** The default and maximum session lengths, in hours. */
export const usualHours = 12;
export const maxHours = 168;

export type LinkOutcome =
  | { state: 'made'; url: string; expiresAt: number; tunnel: string | null }
  | { state: 'refused'; code: ErrorCode; message: string; hint: string | undefined };

export type ReloadOutcome =
  | ({ state: 'applied'; file: string | null; warnings: string[] } & ChangedSettings)
  | { state: 'refused'; code: ErrorCode; message: string; withExcerpts: string; hint: string | undefined };

/** `isTaken`: true if the daemon accepts the task. */
export interface LateReadOutcome {
  isTaken: boolean;
}

/** The header with the change's id, for a late read. */
export const changeHeader = 'x-rankd-change';

/**
 * The header with the operator, percent-encoded. It is trusted, because any user who can open the socket could also
 * write to the audit log.
 */
export const operatorHeader = 'x-rankd-operator';

/** The header with a link's session: its hours, and `view` if it can't change anything. */
export const sessionHeader = 'x-rankd-session';

/** The socket's name. It is in the data directory, unless that can't contain a socket. */
export const socketName = 'daemon.sock';

/**
 * The file in the data directory that contains the socket's path, if the directory can't contain the socket: CIFS and
 * exFAT have no sockets, and a path can have at most 107 bytes (unix(7); 103 on macOS). On Windows, the file contains
 * the pipe's name. That name is random, because another user could create a pipe with a known name first and
 * impersonate the daemon.
 */
export const addressName = 'daemon.address';

/**
 * Returns the path of the daemon's socket or pipe; `undefined` if there is none, or if other users can access its
 * folder.
 */
export function controlPath(dataDir: string): string | undefined {
  const socket = join(dataDir, socketName);
  if (thisSystem.hasSocketFiles && existsSync(socket)) return socket;
  const address = addressIn(dataDir);
  return address !== undefined && (!thisSystem.hasSocketFiles || isPrivate(dirname(address))) ? address : undefined;
}

/** Returns the address that the latest daemon stored; `undefined` if there is none. */
export function addressIn(dataDir: string): string | undefined {
  try {
    return readFileSync(join(dataDir, addressName), 'utf8').trim() || undefined;
  } catch {
    return undefined; // whatever the error, no socket is known
  }
}

/**
 * True if only this user can use the folder. After the system has cleaned up its temporary folder, another user could
 * create a folder with this name.
 */
function isPrivate(folder: string): boolean {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return found?.isDirectory() === true && (found.mode & 0o077) === 0 && found.uid === ownUid();
}
