import type { ServedApp } from '../app.ts';
import { version } from '../base/version.ts';
import type { Config } from '../config/config.ts';
import { groupTitle } from '../config/group-title.ts';
import type { LiveConfig } from '../daemon/live-config.ts';
import type { RecentProblems } from '../daemon/recent-problems.ts';

/** What a running daemon says of itself, as JSON on its control socket; times are ISO 8601. */
export interface DaemonStatus {
  pid: number;
  version: string;
  node: string;
  startedAt: string;
  uptimeSeconds: number;
  url: string;
  metricsUrl: string | null;
  platform: Config['platform']['kind'];
  groupId: number | null;
  /** The group that ranks are changed in, in words: what two processes must agree on. */
  changesRanksIn: string;
  isStopping: boolean;
  /** The configuration file that `rankd reload` would read; null where there is none. */
  configFile: string | null;
  /** Settings that `rankd reload` found changed and that only a restart takes up. */
  needRestart: string[];
  credential: CredentialStatus;
  /** Requests that are not answered yet. */
  requestsInFlight: number;
  /** Calls that wait for their turn in the platform's budget. */
  callsWaiting: number;
  /** Calls that could start now, by kind; empty where the platform sets no pace. */
  budget: Array<{ operation: string; limit: number; left: number; waiting: number }>;
  /** What the log last warned of, newest first. */
  problems: Array<{ at: string; message: string }>;
}

export interface CredentialStatus {
  /** False while the platform is not called because it does not accept the credential. */
  isAccepted: boolean;
  /** Why not. */
  problem: string | null;
  /** What the platform said of it when it was last asked; null before that, and where it does not say. */
  actingUserId: number | null;
  expiresAt: string | null;
}

export interface StatusSources {
  app: ServedApp;
  /** The one in force. */
  live: Pick<LiveConfig, 'config' | 'file' | 'needRestart'>;
  url: string;
  metricsUrl: string | undefined;
  process: { pid: number; nodeVersion: string };
  /** On `Clock.now()` and `Clock.monotonic()`. */
  started: { at: number; monotonic: number };
  problems: RecentProblems;
}

export function daemonStatus(sources: StatusSources): DaemonStatus {
  const { app, live, url, metricsUrl = null, process, started, problems } = sources;
  const budget = app.platform
    .pace()
    .map(({ operation, limit, left, waiting }) => ({ operation, limit, left, waiting }));
  return {
    pid: process.pid,
    version,
    node: process.nodeVersion,
    startedAt: new Date(started.at).toISOString(),
    uptimeSeconds: Math.floor((app.clock.monotonic() - started.monotonic) / 1_000),
    url,
    metricsUrl,
    platform: live.config.platform.kind,
    groupId: live.config.platform.groupId ?? null,
    changesRanksIn: groupTitle(live.config.platform),
    isStopping: app.isDraining,
    configFile: live.file ?? null,
    needRestart: live.needRestart,
    credential: credentialStatus(app),
    requestsInFlight: app.inFlight,
    callsWaiting: budget.reduce((sum, { waiting }) => sum + waiting, 0),
    budget,
    problems: problems.newestFirst(),
  };
}

function credentialStatus(app: ServedApp): CredentialStatus {
  const dead = app.deadCredential();
  const { userId = null, expiresAt } = app.latestCredential() ?? {};
  return {
    isAccepted: dead === undefined,
    problem: dead?.message ?? null,
    actingUserId: userId,
    expiresAt: expiresAt === undefined ? null : new Date(expiresAt).toISOString(),
  };
}
