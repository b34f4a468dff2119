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
  /** The address at which games reach it; null if the configuration has none. */
  publicUrl: string | null;
  metricsUrl: string | null;
  platform: Config['platform']['kind'];
  /** True if the group is simulated: nothing touches Roblox. */
  simulated: boolean;
  groupId: number | null;
  /** From the latest read of Roblox; null before that. */
  groupName: string | null;
  /** The title of the group whose ranks it changes: two processes must agree on it. */
  changesRanksIn: string;
  isStopping: boolean;
  /** The configuration file that `rankd reload` would read; null if there is none. */
  configFile: string | null;
  /** Settings that `rankd reload` found changed, but that need a restart. */
  needRestart: string[];
  /** The reason the daemon can't use its database; null if it can. */
  storeProblem: string | null;
  credential: CredentialStatus;
  /** Hosts of Roblox that can't be reached now, each with the reason. */
  unreached: Array<{ host: string; since: string; cause: string | null; message: string; hint: string | null }>;
  platformTrust: {
    /** The reason no rank is changed until a reload; null if there is none. */
    stop: string | null;
    /** False if a late read contradicted the platform's response, and none has agreed since. */
    believesAnswers: boolean;
    /** Unexpected behavior of Roblox since the start, by kind. Contains no values from its responses. */
    surprises: Array<{ operation: string; what: string; count: number; firstAt: string; lastAt: string }>;
  };
  /** Settings that no longer identify their role, each with the line to write. */
  misfits: Array<{ setting: string; entry: string; message: string; fix: string }>;
  /** False if the workspace is suspended, so no game can do anything; null if the database does not respond. */
  workspaceActive: boolean | null;
  /** False if no game can do anything, because no key is accepted; null if the database does not respond. */
  acceptsKeys: boolean | null;
  /** Games whose module Rankd is older than this daemon. */
  olderModules: Array<{ placeId: number; version: string }>;
  /** Members whose earlier roles can't be given back, by name; null if the database does not respond. */
  stuckSuspensions: string[] | null;
  /** The webhooks; null if the database does not respond. */
  webhooks: Array<{
    name: string;
    state: 'enabled' | 'failing' | 'disabled';
    backlog: number;
    lastError: string | null;
  }> | null;
  /** Requests without an answer so far. */
  requestsInFlight: number;
  /** Calls that wait in the queue for the platform's budget. */
  callsWaiting: number;
  /** Calls that could start now, by kind; empty if the platform has no limits. */
  budget: Array<{ operation: string; limit: number; left: number; waiting: number }>;
  /** The last warnings and errors of the log, newest first. */
  problems: Array<{ at: string; message: string }>;
  /** The address of the operator's page, and its number of sessions; null if no link was requested yet. */
  dashboard: { url: string; sessions: number } | null;
  /** The Discord server whose commands it accepts, and when Discord last sent a signed request since the start; null without `discord`. */
  discord: { server: string; lastAt: string | null } | null;
}

interface CredentialStatus {
  /** False while the platform is not called because it does not accept the credential. */
  isAccepted: boolean;
  /** The reason the credential is not accepted. */
  problem: string | null;
  /** From the platform's latest report on the credential; null before that, and if the platform does not report it. */
  actingUserId: number | null;
  expiresAt: string | null;
}

interface StatusSources {
  app: DaemonContext;
  /** The configuration in force. */
  live: { config: Config; file: string | undefined; needRestart: string[] };
  url: string;
  metricsUrl: string | undefined;
  process: { pid: number; nodeVersion: string };
  storeProblem: string | undefined;
  workspaceActive: boolean | undefined;
  acceptsKeys: boolean | undefined;
  webhooks: readonly WebhookView[] | undefined;
  stuckHolds: Hold[] | undefined;
  /** On `Clock.now()` and `Clock.monotonic()`. */
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
        .map(({ name, state, backlog, lastError }) => ({ name, state, backlog, lastError })) ?? null,
    ...budgetDocument(app),
    problems,
    dashboard,
    discord:
      app.discord === undefined ? null : { server: app.discord.server, lastAt: isoOrNull(app.discordSeen.lastAt) },
  };
}

/** The rest of the platform's budget, and the waiting calls. */
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

/**
 * A daemon as seen from outside, and facts from the database; `undefined` if there is none yet. `nodes`: all that share
 * the database, if several can.
 */
export interface FoundDaemon {
  state: 'running' | 'stopping' | 'not running' | 'not answering';
  daemon?: DaemonStatus;
  counts: ChangeCounts | undefined;
  /** Epoch milliseconds; null if rankd recorded none. Absent if there is no database. */
  lastBackupAt?: number | null;
  oldSecrets?: OldSecretInUse[];
  /** Requests to be forgotten that wait. */
  erasures?: ErasureRequest[];
  nodes?: SeenNode[] | undefined;
  /** The server's clock minus this machine's. */
  serverAheadMs?: number;
  lateWrites?: LateWrite[];
}

/** The facts from the database that a command and the page both show. */
export async function storedFacts(
  ports: Pick<Ports, 'store' | 'clock'>,
): Promise<Pick<FoundDaemon, 'lastBackupAt' | 'oldSecrets' | 'erasures'>> {
  const [lastBackupAt = null, oldSecrets] = [await ports.store.lastBackupAt(), await oldSecretsInUse(ports)];
  return { lastBackupAt, oldSecrets, erasures: await ports.store.waitingErasures() };
}

/** The fields of the daemon exist only if it responds. */
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
    state: found.state.replace(' ', '_'),
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
