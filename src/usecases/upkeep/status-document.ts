import { isoOrNull, isoTime } from '../../base/time.ts';
import { version } from '../../base/version.ts';
import type { Config } from '../../config/config.ts';
import { memberTitle } from '../../core/describe.ts';
import { groupTitle } from '../../core/group-title.ts';
import type { ErasureRequest, Hold } from '../../core/model.ts';
import { differencesOf, type SeenNode } from '../../core/nodes.ts';
import type { Ports } from '../../ports/index.ts';
import { type DaemonContext, surprisesOf } from '../daemon-context.ts';
import type { ChangeCounts } from '../history/history.ts';
import type { LateWrite } from '../history/late-writes.ts';
import { type OldSecretInUse, oldSecretsInUse } from '../keys/inspect-keys.ts';
import type { WebhookView } from '../webhooks/view-webhooks.ts';
import { webhookDocument } from '../webhooks/webhook-document.ts';

/** The status of a running daemon; times are ISO 8601. */
export interface DaemonStatus {
  pid: number;
  version: string;
  node: string;
  startedAt: string;
  uptimeSeconds: number;
  url: string;
  /** The address at which games can reach the daemon; null if the configuration has none. */
  publicUrl: string | null;
  metricsUrl: string | null;
  platform: Config['platform']['kind'];
  /** True if the group is simulated, in which case rankd does not call Roblox. */
  simulated: boolean;
  groupId: number | null;
  /** The group's name when rankd last read it; null before the first read. */
  groupName: string | null;
  /** The title of the group whose ranks the daemon changes. Commands must change ranks in the same group. */
  changesRanksIn: string;
  isStopping: boolean;
  /** The configuration file that `rankd reload` would read; null if there is none. */
  configFile: string | null;
  /** Changed settings that apply only after a restart. */
  needRestart: string[];
  /** The reason the daemon can't use its database; null if it can. */
  storeProblem: string | null;
  credential: CredentialStatus;
  unreached: Array<{ host: string; since: string; cause: string | null; message: string; hint: string | null }>;
  platformTrust: {
    /** The reason why rankd changes no ranks until the next reload; null if there is none. */
    stop: string | null;
    /** False from the time a read contradicts the platform's response to a write until a late read agrees with one. */
    believesAnswers: boolean;
    /**
     * Roblox's unexpected behavior since the daemon started, grouped by kind, without any values from its responses.
     */
    surprises: Array<{ operation: string; what: string; count: number; firstAt: string; lastAt: string }>;
  };
  /** Entries that do not identify their role, or no longer do. `fix` is the line to write or the command to run. */
  misfits: Array<{ setting: string; entry: string; message: string; fix: string }>;
  /** False if the workspace is suspended, in which case all keys are refused; null if the database does not respond. */
  workspaceActive: boolean | null;
  /** False if rankd accepts no key, in which case games can't do anything; null if the database does not respond. */
  acceptsKeys: boolean | null;
  /** Places whose Rankd module is older than this daemon. */
  olderModules: Array<{ placeId: number; version: string }>;
  /** The names of members whose previous roles can't be restored; null if the database does not respond. */
  stuckSuspensions: string[] | null;
  /** Null if the database does not respond. */
  webhooks: Array<{
    name: string;
    state: 'enabled' | 'failing' | 'disabled';
    /** The reason it is disabled; null if it is not. */
    why: string | null;
    backlog: number;
    lastError: string | null;
  }> | null;
  requestsInFlight: number;
  callsWaiting: number;
  /** One entry per kind of call; empty if the platform has no limits. */
  budget: Array<{ operation: string; limit: number; left: number; waiting: number }>;
  /** The latest warnings and errors in the log, newest first. */
  problems: Array<{ at: string; message: string }>;
  /** The dashboard's address and its number of sessions; null while the dashboard is not listening. */
  dashboard: { url: string; sessions: number } | null;
  /**
   * The Discord server whose commands are accepted, and the time of the last signed request since the daemon started;
   * null if Discord is not configured.
   */
  discord: { server: string; lastAt: string | null } | null;
}

interface CredentialStatus {
  /** False while rankd makes no calls because the platform refuses the credential. */
  isAccepted: boolean;
  problem: string | null;
  /** The account that the credential acts as, according to the platform's latest report; null if unreported. */
  actingUserId: number | null;
  expiresAt: string | null;
}

interface StatusSources {
  app: DaemonContext;
  live: { config: Config; file: string | undefined; needRestart: string[] };
  url: string;
  metricsUrl: string | undefined;
  process: { pid: number; nodeVersion: string };
  storeProblem: string | undefined;
  workspaceActive: boolean | undefined;
  acceptsKeys: boolean | undefined;
  webhooks: readonly WebhookView[] | undefined;
  stuckHolds: Hold[] | undefined;
  /** The time at which the daemon started, on `Clock.now()` and on `Clock.monotonic()`. */
  started: { at: number; monotonic: number };
  problems: DaemonStatus['problems'];
  dashboard: DaemonStatus['dashboard'];
}

export function daemonStatus(sources: StatusSources): DaemonStatus {
  const { app, live, url, metricsUrl = null, process, started, problems, dashboard } = sources;
  return {
    pid: process.pid,
    version,
    node: process.nodeVersion,
    startedAt: isoTime(started.at),
    uptimeSeconds: Math.floor((app.clock.monotonic() - started.monotonic) / 1_000),
    url,
    publicUrl: live.config.server.publicUrl ?? null,
    metricsUrl,
    platform: live.config.platform.kind,
    simulated: live.config.platform.kind === 'simulated',
    groupId: live.config.platform.groupId ?? null,
    groupName: app.group.name ?? null,
    changesRanksIn: groupTitle(live.config.platform),
    isStopping: app.requests.isDraining,
    configFile: live.file ?? null,
    needRestart: live.needRestart,
    storeProblem: sources.storeProblem ?? null,
    credential: credentialStatus(app),
    unreached: app.platform.reachability().unreached.map(({ host, since, error }) => ({
      ...{ host, since: isoTime(since), cause: error.connection ?? null },
      ...{ message: error.message, hint: error.hint ?? null },
    })),
    platformTrust: {
      stop: app.trust.stop?.message ?? null,
      believesAnswers: app.trust.believesAnswers,
      surprises: surprisesOf(app).map(({ firstAt, lastAt, ...surprise }) => ({
        ...surprise,
        firstAt: isoTime(firstAt),
        lastAt: isoTime(lastAt),
      })),
    },
    misfits: (app.group.misfits ?? []).map(({ setting, entry, message, fix }) => ({ setting, entry, message, fix })),
    workspaceActive: sources.workspaceActive ?? null,
    acceptsKeys: sources.acceptsKeys ?? null,
    olderModules: app.gameModules.olderThan(version),
    stuckSuspensions: sources.stuckHolds?.map(memberTitle) ?? null,
    webhooks:
      sources.webhooks
        ?.map(webhookDocument)
        .map(({ name, state, why, backlog, lastError }) => ({ name, state, why, backlog, lastError })) ?? null,
    ...budgetDocument(app),
    problems,
    dashboard,
    discord:
      app.discord === undefined ? null : { server: app.discord.server, lastAt: isoOrNull(app.discordSeen.lastAt) },
  };
}

export function budgetDocument({ platform, requests }: Pick<DaemonContext, 'platform' | 'requests'>) {
  const budget = platform.pace().map(({ operation, limit, left, waiting }) => ({ operation, limit, left, waiting }));
  return {
    requestsInFlight: requests.count,
    callsWaiting: budget.reduce((sum, { waiting }) => sum + waiting, 0),
    budget,
  };
}

function credentialStatus(app: DaemonContext): CredentialStatus {
  const dead = app.deadCredential();
  const { userId = null, expiresAt } = app.latestCredential() ?? {};
  return {
    isAccepted: dead === undefined,
    problem: dead?.message ?? null,
    actingUserId: userId,
    expiresAt: isoOrNull(expiresAt),
  };
}

/** A daemon's state as seen from outside, with data from the database. */
export interface FoundDaemon {
  state: 'running' | 'stopping' | 'not running' | 'not responding';
  daemon?: DaemonStatus;
  counts: ChangeCounts | undefined;
  /** Epoch milliseconds; null if no backup was recorded. Absent if there is no database. */
  lastBackupAt?: number | null;
  oldSecrets?: OldSecretInUse[];
  erasures?: ErasureRequest[];
  /** All daemons that share the database; absent if only one daemon can use it. */
  nodes?: SeenNode[] | undefined;
  /** The database server's clock minus this machine's. */
  serverAheadMs?: number;
  lateWrites?: LateWrite[];
}

/** Returns the data from the database that both `rankd status` and the dashboard show. */
export async function storedFacts(
  ports: Pick<Ports, 'store' | 'clock'>,
): Promise<Pick<FoundDaemon, 'lastBackupAt' | 'oldSecrets' | 'erasures'>> {
  const [lastBackupAt = null, oldSecrets] = [await ports.store.lastBackupAt(), await oldSecretsInUse(ports)];
  return { lastBackupAt, oldSecrets, erasures: await ports.store.waitingErasures() };
}

export function statusDocument(found: FoundDaemon) {
  const { isStopping: _, ...daemon } = found.daemon ?? { isStopping: false };
  const { openChanges = null, today = null } = found.counts ?? {};
  const { nodes, serverAheadMs = 0, lateWrites = [] } = found;
  const shared = nodes && {
    nodes: nodes.map(nodeDocument),
    differences: differencesOf(nodes),
    serverAheadMs,
    lateWrites: lateWrites.map(({ at, ...late }) => ({ at: isoTime(at), ...late })),
  };
  const backup = found.lastBackupAt !== undefined && { lastBackupAt: isoOrNull(found.lastBackupAt ?? undefined) };
  const oldSecrets = found.oldSecrets?.map(({ keyName, lastUsedAt, lastPlaceId, expiresAt }) => ({
    ...{
      key: keyName,
      lastUsedAt: isoTime(lastUsedAt),
      lastPlaceId: lastPlaceId ?? null,
      expiresAt: isoTime(expiresAt),
    },
  }));
  return {
    state: found.state === 'not responding' ? 'not_answering' : found.state.replace(' ', '_'),
    ...daemon,
    openChanges,
    changesToday: today,
    ...backup,
    ...(oldSecrets && { oldSecretsInUse: oldSecrets }),
    ...(found.erasures && { erasures: erasuresDocument(found.erasures) }),
    ...shared,
  };
}

function erasuresDocument(waiting: readonly ErasureRequest[]) {
  return { waiting: waiting.length, oldestAt: isoOrNull(waiting[0]?.receivedAt) };
}

function nodeDocument({ name, state, status: { settings: _, isDraining: _draining, ...status } }: SeenNode) {
  return { name, state: state.replace(' ', '_'), ...status };
}
