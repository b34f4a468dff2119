import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ErrorCode } from '../base/errors.ts';
import { ownUid, thisSystem } from '../base/system.ts';
import type { ChangedSettings } from '../config/compare.ts';
import type { DaemonStatus } from '../usecases/upkeep/status-document.ts';

/** The requests of commands to a daemon. Its answers are sent as JSON. */
export interface Control {
  status(): Promise<DaemonStatus>;
  /** The identity behind its proofs (`src/core/proof.ts`). */
  identity(): Promise<{ identity: string }>;
  /** `by`: the actor in the audit. */
  reload(by: string): Promise<ReloadOutcome>;
  /** The same, but resolves every entry that names roles again. */
  relearn(by: string): Promise<ReloadOutcome>;
  /** Asks for a late read of a change that a command reported as applied. */
  lateRead(changeId: string): Promise<LateReadOutcome>;
  /** A link to the page. The page listens from then on. */
  dashboardLink(asked: AskedLink): Promise<LinkOutcome>;
  /** Ends all sessions of the page. `by`: the actor in the audit. */
  dashboardLogout(by: string): Promise<{ sessions: number }>;
}

/** A requested link to the page. */
export interface AskedLink {
  /** The operator. */
  by: string;
  /** True if its session can change nothing. */
  isViewOnly: boolean;
  /** The length of its session. */
  hours: number;
}

/** The length of a session by default, and at most: a week. */
export const usualHours = 12;
export const maxHours = 168;

/** The outcome of a request for a link to the page. */
export type LinkOutcome =
  | { state: 'made'; url: string; expiresAt: number; tunnel: string | null }
  | { state: 'refused'; code: ErrorCode; message: string; hint: string | undefined };

/** The outcome of a reload. */
export type ReloadOutcome =
  | ({ state: 'applied'; file: string | null; warnings: string[] } & ChangedSettings)
  | { state: 'refused'; code: ErrorCode; message: string; withExcerpts: string; hint: string | undefined };

/** True if the daemon makes the late read. */
export interface LateReadOutcome {
  isTaken: boolean;
}

/** Has the id of the change for the late read. */
export const changeHeader = 'x-rankd-change';

/** Has the requesting operator, percent-encoded. Everyone who can open the socket could also write the audit. */
export const operatorHeader = 'x-rankd-operator';

/** Has the kind of session that a link begins: its hours, and `view` for one that can change nothing. */
export const sessionHeader = 'x-rankd-session';

/** In the data directory, unless that can't hold a socket. */
export const socketName = 'daemon.sock';

/**
 * The file in the data directory with the path of the socket, if the directory can't hold it: CIFS and exFAT have no
 * sockets, and a path may have at most 107 bytes (unix(7); 103 on macOS). On Windows, it has the name of the pipe,
 * which is random: another user could create a pipe with a known name first, and answer in place of the daemon.
 */
export const addressName = 'daemon.address';

/** The address at which the daemon of a data directory answers commands; `undefined` if none does. */
export function controlPath(dataDir: string): string | undefined {
  const socket = join(dataDir, socketName);
  if (thisSystem.hasSocketFiles && existsSync(socket)) return socket;
  const address = addressIn(dataDir);
  return address !== undefined && (!thisSystem.hasSocketFiles || isPrivate(dirname(address))) ? address : undefined;
}

/** The address of the latest daemon's socket, as it stored it. */
export function addressIn(dataDir: string): string | undefined {
  try {
    return readFileSync(join(dataDir, addressName), 'utf8').trim() || undefined;
  } catch {
    return undefined; // whatever the reason, no socket is known
  }
}

/**
 * True if only this user can use a folder: after the system has cleaned its temporary folder, another user could create
 * one with that name.
 */
function isPrivate(folder: string): boolean {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return found?.isDirectory() === true && (found.mode & 0o077) === 0 && found.uid === ownUid();
}
