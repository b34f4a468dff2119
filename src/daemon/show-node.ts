import { hostname } from 'node:os';
import type { ApplyOptions } from '../app.ts';
import { systemClock } from '../base/clock.ts';
import { version } from '../base/version.ts';
import { fingerprintsOf } from '../config/compare.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { ReloadOutcome } from '../control/control.ts';
import { storeLost } from '../core/events.ts';
import type { NodeStatus } from '../core/nodes.ts';
import { budgetDocument } from '../usecases/upkeep/status-document.ts';
import type { Daemon } from './daemon.ts';

interface ShownDaemon {
  daemon: Daemon;
  live: {
    loaded: LoadedConfig;
    reload(by: string, options?: ApplyOptions): Promise<ReloadOutcome>;
    redeclare(): Promise<void>;
  };
  page: { lastingUrl: string | null; logAllOut(by: string): Promise<{ sessions: number }> };
  /** In milliseconds (on `Clock.monotonic()`). */
  startedAt: number;
}

/**
 * If several nodes can share the store, publishes this daemon's status in the store, and carries out the commands that
 * are stored for this daemon.
 */
export async function showNode({ daemon: { app, url }, live, page, startedAt }: ShownDaemon): Promise<void> {
  const { nodes } = app.current.store;
  if (nodes === undefined) return;
  let settings = { of: live.loaded, fingerprints: fingerprintsOf(live.loaded) };
  const status = (): NodeStatus => {
    const { current } = app;
    if (settings.of !== live.loaded) settings = { of: live.loaded, fingerprints: fingerprintsOf(live.loaded) };
    return {
      ...{ version, url, group: current.group.title, page: page.lastingUrl, isDraining: current.requests.isDraining },
      uptimeSeconds: Math.floor((current.clock.monotonic() - startedAt) / 1_000),
      ...budgetDocument(current),
      serverAheadMs: Math.round(current.clock.now() - systemClock.now()),
      credentialProblem: current.deadCredential()?.message ?? null,
      settings: settings.fingerprints,
    };
  };
  const name = live.loaded.config.nodeName ?? `${hostname()}:${new URL(url).port}`;
  await nodes.showNode({
    name,
    status,
    onLost: (range) => void recordLost({ ...app.current, name }, range),
    onNodesChanged: () => void live.redeclare(),
    carryOut: async ({ does, by }) =>
      does === 'logout' ? page.logAllOut(by) : withoutExcerpts(await live.reload(by, { relearns: does === 'relearn' })),
  });
}

/** Records in the log and the audit log that the database has lost events that it had confirmed. */
async function recordLost(
  { store, clock, log, name }: Pick<Daemon['app']['current'], 'store' | 'clock' | 'log'> & { name: string },
  range: { fromId: number; toId: number },
): Promise<void> {
  const lost =
    range.fromId === range.toId
      ? `audit event ${range.fromId}, and the change that it records`
      : `audit events ${range.fromId} to ${range.toId}, and the changes that they record`;
  log.error(
    { ...range, hint: 'see docs/several-daemons.md: a synchronous standby prevents this' },
    `PostgreSQL has lost the latest confirmed writes: ${lost}`,
  );
  const event = storeLost(range, { by: `daemon:${name}`, at: clock.now() });
  await store
    .appendAudit(event)
    .catch((error: unknown) => log.error({ err: error }, 'store.lost could not be recorded in the audit'));
}

/** Removes the excerpts, because a file's content must not leave its machine. */
function withoutExcerpts(outcome: ReloadOutcome): ReloadOutcome {
  return outcome.state === 'refused' ? { ...outcome, withExcerpts: outcome.message } : outcome;
}
