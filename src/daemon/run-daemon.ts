import { join } from 'node:path';
import { systemClock } from '../base/clock.ts';
import { closeAll, openAll } from '../base/close-all.ts';
import { asRankdError, type RankdError } from '../base/errors.ts';
import { createLog, type LogLevel } from '../base/log.ts';
import type { Paints } from '../base/paint.ts';
import type { Config } from '../config/config.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { LinkRequest, ReloadOutcome } from '../control/control.ts';
import { listenForCommands } from '../control/listen.ts';
import type { Migration } from '../ports/index.ts';
import { requestLateRead } from '../usecases/change/late-read.ts';
import type { DaemonContext } from '../usecases/daemon-context.ts';
import { storeServedGroup } from '../usecases/group/served-group.ts';
import { stuckHolds } from '../usecases/holds/open-hold.ts';
import { isAnyKeyAccepted, keysOfSimulation, pausedAmong } from '../usecases/keys/keys.ts';
import { type DaemonStatus, daemonStatus } from '../usecases/upkeep/status-document.ts';
import { viewWebhooks } from '../usecases/webhooks/view-webhooks.ts';
import { webhookDocument } from '../usecases/webhooks/webhook-document.ts';
import { showWorkspace } from '../usecases/workspace/workspace.ts';
import { type Daemon, LazyDashboard, startDaemon } from './daemon.ts';
import { LiveConfig } from './live-config.ts';
import { RecentProblems } from './recent-problems.ts';
import { showNode } from './show-node.ts';
import { logStartupSummary } from './startup-summary.ts';
import { reportToServiceManager } from './systemd.ts';

export interface RunOptions {
  started: LoadedConfig;
  load: () => Promise<LoadedConfig>;
  /** Absolute. */
  dataDir: string;
  process: {
    pid: number;
    nodeVersion: string;
    env: Record<string, string | undefined>;
    log(line: string): void;
    isLogFull(): boolean;
    packageDir: string;
    /** The command that starts rankd on this machine. */
    typedAs: string;
  };
  logLevelOf: (config: Config) => LogLevel;
  /** Colors for readable log lines; false for JSON. */
  readableLog: Paints | false;
  /** Replaces `rankd` in the commands that a log line mentions with the command that starts rankd on this machine. */
  asTyped: (line: string) => string;
  onMigrated: (migration: Migration) => void;
  onNew: () => void;
}

/** Stops the daemon when disposed. */
interface RunningDaemon extends AsyncDisposable {
  daemon: Daemon;
  /** `by` is the actor to record in the audit log. Never rejects. */
  reload(by: string): Promise<ReloadOutcome>;
  /**
   * Notifies the service manager that the daemon is ready, and stops the daemon once `signal` resolves. Throws
   * `schema_newer` if a newer rankd migrates the database in the meantime.
   */
  stopOn(signal: Promise<string>): Promise<void>;
}

export function runDaemon(options: RunOptions): Promise<RunningDaemon> {
  return openAll(async (closers) => {
    const { started, load, dataDir, process, logLevelOf, readableLog, asTyped, onMigrated, onNew } = options;
    const { config } = started;
    const problems = new RecentProblems();
    const log = createLog({
      level: logLevelOf(config),
      readable: readableLog,
      write: (line) => process.log(asTyped(line)),
      isFull: () => process.isLogFull(),
      note: (line) => problems.note(line),
    });
    const startedAt = { at: systemClock.now(), monotonic: systemClock.monotonic() };
    let lazyDashboard: LazyDashboard | undefined;
    const daemon = await startDaemon({
      ...{ config, dataDir, log, onMigrated, onNew, portFrom: started.portFrom },
      portHint: process.typedAs === '' ? 'set server.port' : undefined, // the console does not accept commands yet
      beforeListening: async (live, server) => {
        lazyDashboard = new LazyDashboard({
          ...{ live, config: config.dashboard, status: () => status(), typedAs: process.typedAs },
          ...{ publicUrl: config.server.publicUrl, trustedProxies: config.server.trustedProxies },
          pageFolder: join(process.packageDir, 'dist', 'dashboard'),
        });
        await lazyDashboard.mount(server);
      },
    }).catch(async (error: unknown) => {
      await lazyDashboard?.[Symbol.asyncDispose]();
      throw error;
    });
    closers.push(() => daemon.stop()); // runs last, because it unlocks the data directory
    await storeServedGroup(daemon.app.current, started);
    const live = new LiveConfig({
      ...{ app: daemon.app, started, load },
      onApplied: async (now) => {
        log.level = logLevelOf(now);
        return warnOfSimulatedKeys(daemon.app.current);
      },
    });
    const status = async (): Promise<DaemonStatus> => {
      const { url, metricsUrl } = daemon;
      const storeProblem = await problemOf(daemon.app.current.store.ping());
      const app = daemon.app.current;
      const lasting = {
        configuration: live.isRefused,
        credential: app.deadCredential() !== undefined,
        group: !app.group.isReadable,
        roles: false, // the status lists role problems separately
        'simulated keys': await anyOf(keysOfSimulation(app, app.group, { limit: 1 })),
        'plain http': !app.requests.hasSeenTls,
        'audit heads': daemon.heads.isFailing,
        platform: app.platform.reachability().unreached.length > 0,
        trust: !app.trust.believesAnswers || app.trust.stop !== undefined,
      };
      const workspaceActive = await showWorkspace(app).then(
        ({ active }) => active,
        () => undefined,
      );
      const acceptsKeys = await isAnyKeyAccepted(app, app.group).catch(() => undefined);
      const stuck = await stuckHolds(app).catch(() => undefined);
      const webhooks = await viewWebhooks(app).catch(() => undefined);
      const of = { app, live, webhooks, url, metricsUrl, process, storeProblem, acceptsKeys, stuckHolds: stuck };
      const standing = { workspaceActive, dashboard: lazyDashboard?.standing ?? null };
      return daemonStatus({
        ...{ ...of, ...standing, started: startedAt },
        problems: await problems.newestFirst(
          {
            lasting,
            pausedKeys: await pausedAmong(app, problems.keyIds).catch(() => new Set(problems.keyIds)),
            isCredentialDead: app.deadCredential() !== undefined,
            platformSucceededAt: app.trust.stop === undefined ? app.platformSucceededAt() : { read: 0, write: 0 },
            storeWorks: () => app.store.pingWrites().then(isTrue, isFalse),
            isChangeOpen: (id) => isOpenChange(app, id),
            failingWebhooks: new Set((webhooks ?? []).map(webhookDocument).flatMap(nameIfFailing)),
          },
          systemClock.now(),
        ),
      });
    };
    if (lazyDashboard === undefined) throw new TypeError('the daemon listens without its page');
    const page = lazyDashboard;
    closers.push(page);
    await page.openIfEnabled(daemon.url);
    await showNode({ daemon, live, page, startedAt: startedAt.monotonic });
    const identity = async () => ({ identity: daemon.app.current.identity });
    const lateRead = (changeId: string) => requestLateRead(daemon.app.current, changeId);
    const control = {
      ...{ status, identity, lateRead, reload: (by: string) => live.reload(by) },
      relearn: (by: string) => live.reload(by, { relearns: true }),
      dashboardLink: (asked: LinkRequest) => page.link(asked),
      dashboardLogout: (by: string) => page.logAllOut(by),
    };
    closers.push(await listenForCommands({ dataDir, log, env: process.env }, control), live);
    return {
      daemon,
      reload: (by) => live.reload(by),
      async stopOn(signal) {
        await warnOfSimulatedKeys(daemon.app.current);
        closers.push(await reportToServiceManager({ ...daemon.app.current, env: process.env }));
        closers.push(logStartupSummary(daemon.app.current, config));
        const stopping = new AbortController();
        const cause = await Promise.race([signal, untilSchemaTooNew(daemon.app.current, stopping.signal)]);
        stopping.abort();
        if (typeof cause === 'string') log.info({ signal: cause }, 'stopping once running work has finished');
        else
          log.error(
            { err: cause },
            'stopping once running work has finished, because a newer version of rankd has changed the database',
          );
        await closeAll(closers);
        log.info('stopped');
        if (typeof cause !== 'string') throw cause;
      },
      [Symbol.asyncDispose]: () => closeAll(closers),
    };
  });
}

/** Resolves with the reason once this version of rankd can no longer use the database. Never settles after `stop`. */
async function untilSchemaTooNew({ store, log }: DaemonContext, stop: AbortSignal): Promise<RankdError> {
  for (;;) {
    const why = schemaTooNewOf(store, log);
    if (why !== undefined) return why;
    await systemClock.sleep(checkSchemaEveryMs, stop).catch(() => new Promise(() => undefined));
  }
}

const checkSchemaEveryMs = 1_000;

/**
 * Returns the error if a newer version of rankd has migrated the database. Ignores an unreadable database, because
 * requests already report that.
 */
function schemaTooNewOf(store: DaemonContext['store'], log: DaemonContext['log']): RankdError | undefined {
  try {
    return store.schemaTooNew();
  } catch (error) {
    log.debug({ err: error }, 'the schema of the database could not be read; trying again');
    return undefined;
  }
}

const isTrue = () => true;
const isFalse = () => false;

/** Also true if the store can't be read. */
async function isOpenChange({ store }: DaemonContext, id: string): Promise<boolean> {
  try {
    const change = await store.findChange(id);
    return change !== undefined && (change.state === 'pending' || change.state === 'unknown');
  } catch {
    return true;
  }
}

function nameIfFailing({ name, state }: ReturnType<typeof webhookDocument>): string[] {
  return state === 'enabled' ? [] : [name];
}

function problemOf(work: Promise<void>): Promise<string | undefined> {
  return work.then(
    () => undefined,
    (error) => asRankdError(error).message,
  );
}

/** Also true if the list can't be read. */
function anyOf(found: Promise<unknown[]>): Promise<boolean> {
  return found.then(
    ({ length }) => length > 0,
    () => true,
  );
}

/** A game that uses a key from the simulation learns only that the key is refused, so the operator gets a warning. */
async function warnOfSimulatedKeys(app: DaemonContext): Promise<string[]> {
  const keys = await keysOfSimulation(app, app.group, { limit: maxKeysNamed + 1 });
  if (keys.length === 0) return [];
  const more = keys.length > maxKeysNamed ? ' and more' : '';
  const names = keys.slice(0, maxKeysNamed).map(({ name }) => name);
  const warning = `game keys created on the simulated group are not accepted here: ${names.join(', ')}${more}. If a game uses one: rankd key adopt NAME; if not: rankd key revoke NAME`;
  app.log.warn({ problem: 'simulated keys' }, warning);
  return [warning];
}

const maxKeysNamed = 10;
