import { existsSync, realpathSync } from 'node:fs';
import type { ErrorCode } from '../base/errors.ts';
import { thisSystem } from '../base/system.ts';
import type { ChangedSettings } from '../config/changed-settings.ts';
import type { DaemonStatus } from '../usecases/documents/status.ts';

/** What a daemon does for the commands beside it. Its answers are sent as JSON. */
export interface Control {
  status(): Promise<DaemonStatus>;
  /** What its proofs are made with (`src/core/proof.ts`). */
  identity(): Promise<{ identity: string }>;
  /** `by`: who the audit names. */
  reload(by: string): Promise<ReloadOutcome>;
  /** A command has told a change as applied, and asks that it is read once more. */
  look(changeId: string): Promise<LookOutcome>;
  /** A link to the page for the operator `by`, which listens from then on. */
  dashboardLink(by: string): Promise<LinkOutcome>;
  /** Logs everybody out of the page. `by`: who the audit names. */
  dashboardLogout(by: string): Promise<{ sessions: number }>;
}

/** What became of asking for a link to the page. */
export type LinkOutcome =
  | { state: 'made'; url: string; expiresAt: number }
  | { state: 'refused'; code: ErrorCode; message: string; hint: string | undefined };

/** What became of reading the configuration anew. */
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

/** Where the daemon of a data directory answers the commands beside it. */
export function controlPath(dataDir: string): string {
  return thisSystem.controlPath(existsSync(dataDir) ? realpathSync.native(dataDir) : dataDir); // a folder can have several names
}

/** True if it shows without asking that no daemon answers there. */
export function isControlMissing(dataDir: string): boolean {
  return thisSystem.hasSocketFiles && !existsSync(controlPath(dataDir));
}
