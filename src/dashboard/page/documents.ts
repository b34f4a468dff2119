import type { linksDocument } from '../../usecases/discord/links-document.ts';
import type { errorDocument } from '../../usecases/error-document.ts';
import type { memberDocument, roleTitleDocument } from '../../usecases/group/group-document.ts';
import type {
  changeDocument,
  detailedChangeDocument,
  dryRunDocument,
  listDocument,
} from '../../usecases/history/change-document.ts';
import type { holdDocument } from '../../usecases/holds/hold-document.ts';
import type { keyWithPlacesDocument } from '../../usecases/keys/key-document.ts';
import type { undoDocument } from '../../usecases/undo/undo-document.ts';
import type { DaemonStatus, statusDocument } from '../../usecases/upkeep/status-document.ts';
import type { viewSetup } from '../../usecases/views/setup-document.ts';
import type { webhookDocument } from '../../usecases/webhooks/webhook-document.ts';

// The documents that `/api` returns. Most are identical to the command line's `--json` documents.

export type Change = ReturnType<typeof changeDocument>;
export type DetailedChange = ReturnType<typeof detailedChangeDocument>;
export type Hold = ReturnType<typeof holdDocument>;
export type Key = ReturnType<typeof keyWithPlacesDocument> & { changesInDay: number | null };
export type Webhook = ReturnType<typeof webhookDocument>;
export type Person = ReturnType<typeof linksDocument>[number];
export type Setup = Awaited<ReturnType<typeof viewSetup>>;
export type List = ReturnType<typeof listDocument>;
export type Member = ReturnType<typeof memberDocument> & { name: string | null; highest: number | null };
export type RoleTitle = ReturnType<typeof roleTitleDocument>;
export type Undo = ReturnType<typeof undoDocument>;
export type Status = Omit<DaemonStatus, 'isStopping'> &
  Pick<ReturnType<typeof statusDocument>, 'openChanges' | 'changesToday'> & {
    state: 'running' | 'stopping';
    workspaceActive: boolean | null;
  };

export interface Changes {
  changes: Change[];
  next: string | null;
}

export interface Keys {
  keys: Key[];
  next: string | null;
}

export interface Budget extends Pick<Status, 'budget' | 'callsWaiting' | 'requestsInFlight'> {}

export interface Chart {
  hours: Bar[];
  days: Bar[];
  isComplete: boolean;
}

/** The number of changes of each kind in an hour or a day; null until they have been counted. */
export interface Bar {
  from: string;
  promotions: number | null;
  demotions: number | null;
  refused: number | null;
  failed: number | null;
}

export interface UndoPreview {
  undo: Undo;
  ids: string[];
}

export interface Run {
  id: string;
  isRunning: boolean;
  done: number;
  members: number;
  undo: Undo | null;
  list: List | null;
}

/**
 * The group's roles, and the ids of the roles that can be given as a rank (`givable`) or as an extra role
 * (`alongside`).
 */
export interface Roles {
  roles: RoleTitle[];
  givable: number[];
  alongside: number[];
}

export interface FoundMember {
  member: Member;
  suspension: Hold | null;
  changes: Change[];
}

export interface RankTest {
  test: ReturnType<typeof dryRunDocument>;
  /** Null if the change is not allowed. */
  move: {
    from: RoleTitle | null;
    to: RoleTitle;
    steps: Array<{ kind: 'assign' | 'unassign'; role: RoleTitle | null }>;
  } | null;
}

export interface TestedWebhook {
  webhook: string;
  delivered: boolean;
  status: number | null;
  ms: number;
  error: string | null;
}

export interface Session {
  operator: string;
  viewOnly: boolean;
  expiresAt: string;
  /** The command that starts rankd on the daemon's machine, e.g. `npx rankd`. */
  typedAs: string;
}

export type ErrorDocument = Omit<ReturnType<typeof errorDocument>, 'try'> & { try: string | null; field?: string };
