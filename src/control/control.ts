import { accessSync, constants, existsSync, lstatSync, readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import type { ErrorCode } from '../base/errors.ts';
import { thisSystem } from '../base/system.ts';
import type { ChangedSettings } from '../config/compare.ts';
import type { DaemonStatus } from '../usecases/upkeep/status-document.ts';

/** The requests of commands to a daemon. Its answers are sent as JSON. */
export interface Control {
  status(): Promise<DaemonStatus>;
  /** The identity behind its proofs (`src/core/proof.ts`). */
  identity(): Promise<{ identity: string }>;
  /** `by`: who the audit names. */
  reload(by: string): Promise<ReloadOutcome>;
  /** The same, and every entry that names roles is read again. */
  relearn(by: string): Promise<ReloadOutcome>;
  /** A command has told a change as applied, and asks that it is read once more. */
  look(changeId: string): Promise<LookOutcome>;
  /** A link to the page for the operator `by`, which listens from then on. */
  dashboardLink(by: string): Promise<LinkOutcome>;
  /** Logs everybody out of the page. `by`: who the audit names. */
  dashboardLogout(by: string): Promise<{ sessions: number }>;
}

/** The outcome of a request for a link to the page. */
export type LinkOutcome =
  | { state: 'made'; url: string; expiresAt: number; tunnel: string | null }
  | { state: 'refused'; code: ErrorCode; message: string; hint: string | undefined };

/** The outcome of a reload. */
export type ReloadOutcome =
  | ({ state: 'applied'; file: string | null; warnings: string[] } & ChangedSettings)
  | { state: 'refused'; code: ErrorCode; message: string; withExcerpts: string; hint: string | undefined };

/** True if the daemon reads the change once more. */
export interface LookOutcome {
  isTaken: boolean;
}

/** Names the change that is to be read once more. */
export const changeHeader = 'x-rankd-change';

/** Names the operator who asks, percent-encoded. Whoever can open the socket could write the audit, too. */
export const operatorHeader = 'x-rankd-operator';

/** In the data directory, unless that can't hold a socket. */
export const socketName = 'daemon.sock';

/**
 * The file in the data directory with the path of the socket, if the directory can't hold it: CIFS and exFAT have no sockets, and a path may have
 * 107 bytes at most (unix(7); 103 on macOS). On Windows it has the name of the pipe, which is random: another user could
 * create a pipe of a known name first, and answer in place of the daemon.
 */
export const addressName = 'daemon.address';

/** Where the daemon of a data directory answers commands; `undefined` if none does. */
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
    return undefined; // whatever the reason is, no socket is known
  }
}

/** Whether a folder is this user's alone: after the system has removed one from its temporary folder, another user could make one of that name. */
function isPrivate(folder: string): boolean {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (!found?.isDirectory() || (found.mode & 0o077) !== 0) return false;
  try {
    return found.uid === userInfo().uid;
  } catch {
    return isWritable(folder); // a user id without a name, as in a container: only the owner may write there
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
