import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ErrorCode } from '../base/errors.ts';
import { ownUid, thisSystem } from '../base/system.ts';
import type { ChangedSettings } from '../config/compare.ts';
import type { DaemonStatus } from '../usecases/upkeep/status-document.ts';

/** The operations that the daemon offers to commands. Results are sent as JSON. */
export interface Control {
  status(): Promise<DaemonStatus>;
  /** Returns the secret with which the daemon proves its identity (`src/core/proof.ts`). */
  identity(): Promise<{ identity: string }>;
  /** `by` is the actor to record in the audit log, here and below. */
  reload(by: string): Promise<ReloadOutcome>;
  /** Reloads the configuration, and looks up every role name again. */
  relearn(by: string): Promise<ReloadOutcome>;
  /** Uses a late read to verify a change that a command reported as applied. */
  lateRead(changeId: string): Promise<LateReadOutcome>;
  /** Starts serving the dashboard if necessary. */
  dashboardLink(asked: LinkRequest): Promise<LinkOutcome>;
  dashboardLogout(by: string): Promise<{ sessions: number }>;
}

export interface LinkRequest {
  /** The actor to record in the audit log. */
  by: string;
  isViewOnly: boolean;
  /** How long the session lasts. */
  hours: number;
}

/** The default and maximum lengths of a session. */
export const usualHours = 12;
export const maxHours = 168;

export type LinkOutcome =
  | { state: 'made'; url: string; expiresAt: number; tunnel: string | null }
  | { state: 'refused'; code: ErrorCode; message: string; hint: string | undefined };

export type ReloadOutcome =
  | ({ state: 'applied'; file: string | null; warnings: string[] } & ChangedSettings)
  | { state: 'refused'; code: ErrorCode; message: string; withExcerpts: string; hint: string | undefined };

export interface LateReadOutcome {
  isTaken: boolean;
}

/** The id of the change to verify with a late read. */
export const changeHeader = 'x-rankd-change';

/**
 * The operator's name, percent-encoded. The daemon trusts it, because any user who can open the socket could also write
 * to the audit log.
 */
export const operatorHeader = 'x-rankd-operator';

/** The session that a link opens: its hours, followed by `view` if the session can't change anything. */
export const sessionHeader = 'x-rankd-session';

/** The socket is in the data directory, unless that can't contain a socket. */
export const socketName = 'daemon.sock';

/**
 * The file in the data directory that contains the socket's path if the directory can't contain the socket: CIFS and
 * exFAT do not support sockets, and a socket's path can have at most 107 bytes (unix(7); 103 on macOS). On Windows, the
 * file contains the pipe's name, which is random: otherwise, another user could create a pipe with that name first and
 * impersonate the daemon.
 */
export const addressName = 'daemon.address';

/**
 * Returns the path of the daemon's socket or pipe; `undefined` if there is none, or if the socket is outside the data
 * directory in a folder that other users can access.
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
 * True if only this user can access the folder. Once the system has cleaned up its temporary folder, another user could
 * create a folder with the same name.
 */
function isPrivate(folder: string): boolean {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return found?.isDirectory() === true && (found.mode & 0o077) === 0 && found.uid === ownUid();
}
