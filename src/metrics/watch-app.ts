import type { FastifyInstance } from 'fastify';
import { Counter, Gauge } from 'prom-client';
import type { Outcome } from '../core/webhooks/progress.ts';
import { callWithin } from '../ports/platform.ts';
import { changeSurprises } from '../usecases/change/platform-trust.ts';
import { type DaemonContext, type LiveContext, surprisesOf } from '../usecases/daemon-context.ts';
import { stuckHolds } from '../usecases/holds/open-hold.ts';
import { pausedKeys } from '../usecases/keys/keys.ts';
import { readyChecks, requireCheck } from '../usecases/upkeep/readiness.ts';
import { viewWebhooks } from '../usecases/webhooks/view-webhooks.ts';
import { callerRefusals, type Meters } from './meters.ts';

/**
 * If a readiness check takes longer, `rankd_ready` is 0 for that check; if the store takes longer, a scrape omits the
 * gauges with values from the store. Prometheus waits 10 s by default.
 */
const readWithinMs = 3_000;

/**
 * Registers metrics of the daemon's state. Returns a function that updates those that come from the store and the
 * platform; call it before each rendering.
 */
export function watchApp(live: LiveContext, { registry }: Meters): () => Promise<void> {
  const registers = [registry];
  new Gauge({
    name: 'rankd_http_requests_in_flight',
    help: 'Requests without a response so far.',
    registers,
    collect() {
      this.set(live.current.requests.count);
    },
  });
  new Gauge({
    name: 'rankd_credential_accepted',
    help: '0 while Roblox does not accept the Roblox key. rankd then only tests the key, at intervals.',
    registers,
    collect() {
      this.set(live.current.deadCredential() === undefined ? 1 : 0);
    },
  });
  new Counter({
    name: 'rankd_platform_surprises_total',
    help: 'Unexpected behavior of Roblox, in responses to calls or (operation "change") in outcomes of rank changes.',
    labelNames: ['operation', 'what'],
    registers,
    collect() {
      this.reset();
      for (const what of changeSurprises) this.inc({ operation: 'change', what }, 0);
      for (const { operation, what, count } of surprisesOf(live.current)) this.inc({ operation, what }, count);
    },
  });
  new Counter({
    name: 'rankd_foreign_connections_total',
    help: 'Connections that began with a protocol other than HTTP/1.1, e.g. from a misconfigured proxy.',
    labelNames: ['protocol'],
    registers,
    collect() {
      this.reset();
      for (const [protocol, count] of Object.entries(live.current.foreign)) this.inc({ protocol }, count);
    },
  });
  new Gauge({
    name: 'rankd_platform_trusted',
    help: '0 while rankd changes no rank because Roblox behaves unexpectedly.',
    registers,
    collect() {
      this.set(live.current.trust.stop === undefined ? 1 : 0);
    },
  });
  const labelNames = ['operation'];
  const paces = {
    limit: ['rankd_platform_budget_limit', 'Calls that Roblox allows per window.'],
    left: ['rankd_platform_budget_left', 'Calls that could start now.'],
    waiting: ['rankd_platform_queue_depth', 'Calls waiting in the queue.'],
  } as const;
  for (const [field, [name, help]] of Object.entries(paces) as Array<[keyof typeof paces, [string, string]]>) {
    new Gauge({
      name,
      help,
      labelNames,
      registers,
      collect() {
        this.reset(); // removes the operations of a platform that was replaced
        for (const pace of live.current.platform.pace()) this.set({ operation: pace.operation }, pace[field]);
      },
    });
  }
  new Counter({
    name: 'rankd_platform_queue_admitted_total',
    help: 'Calls that left the queue.',
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { operation, admitted } of live.current.platform.pace()) this.inc({ operation }, admitted);
    },
  });
  new Counter({
    name: 'rankd_platform_queue_wait_seconds_total',
    help: 'Total time that calls waited in the queue.',
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { operation, waitedMs } of live.current.platform.pace()) this.inc({ operation }, waitedMs / 1000);
    },
  });
  const stored = [watchStore(registry), watchWebhooks(live, registry)];
  const ready = new Gauge({
    name: 'rankd_ready',
    help: '0 while this check prevents rank changes: the daemon is stopping (running), the Roblox key is not accepted (credential), Roblox behaves unexpectedly (trust), the store accepts no writes (store), Roblox cannot be read (platform), or a setting names a role that is gone (configuration).',
    labelNames: ['check'],
    registers,
  });
  return async () => {
    const app = live.current;
    using call = callWithin(app.clock, readWithinMs, 'metrics');
    const inTime = (work: Promise<unknown>) => isDoneBefore(call.signal, work);
    await Promise.all([
      ...readyChecks.map(async (check) => {
        const isReady = await inTime(requireCheck(check, app, call));
        ready.set({ check }, isReady ? 1 : 0);
      }),
      ...stored.map(async ({ read, forget }) => {
        if (!(await inTime(read(app)))) forget();
      }),
    ]);
  };
}

/** Resolves with false if the work fails, or if the signal is aborted first. */
async function isDoneBefore(signal: AbortSignal, work: Promise<unknown>): Promise<boolean> {
  const late = new Promise<boolean>((resolve) =>
    signal.addEventListener('abort', () => resolve(false), { once: true }),
  );
  const done = work.then(
    () => true,
    () => false,
  );
  return Promise.race([done, late]);
}

/**
 * Gauges with values from the store. They are absent while it does not respond, because stale values would look
 * current.
 */
interface Stored {
  read(app: DaemonContext): Promise<void>;
  forget(): void;
}

function watchStore(registry: Meters['registry']): Stored {
  const registers = [registry];
  const paused = new Gauge({
    name: 'rankd_keys_paused',
    help: 'Game keys that are paused, by the circuit breaker or by you. Daemons that share a database report the same value: use max().',
    registers,
  });
  const open = new Gauge({
    name: 'rankd_open_changes',
    help: 'Rank changes without an outcome, by state: pending or unknown. Daemons that share a database report the same value: use max().',
    labelNames: ['state'],
    registers,
  });
  const stuck = new Gauge({
    name: 'rankd_suspensions_stuck',
    help: 'Suspensions and temporary ranks that cannot be ended; counts at most 20. Daemons that share a database report the same value: use max().',
    registers,
  });
  const backup = new Gauge({
    name: 'rankd_last_backup_timestamp_seconds',
    help: 'When rankd backup last succeeded (Unix time); absent before the first backup. Daemons that share a database report the same value: use max().',
    registers,
  });
  return {
    async read(app) {
      const [keys, changes, holds, backupAt] = await Promise.all([
        pausedKeys(app),
        app.store.openChanges(),
        stuckHolds(app),
        app.store.lastBackupAt(),
      ]);
      if (backupAt === undefined) backup.remove();
      else backup.set(backupAt / 1000);
      paused.set(keys.length);
      for (const state of ['pending', 'unknown'])
        open.set({ state }, changes.filter(({ change }) => change.state === state).length);
      stuck.set(holds.length);
    },
    forget() {
      for (const gauge of [paused, stuck, backup]) gauge.remove();
      open.reset();
    },
  };
}

const deliveryOutcomes = ['delivered', 'failed', 'refused', 'busy', 'gone'] as const satisfies Array<Outcome['kind']>;

/** Webhook names can be labels, because only the operator chooses them. */
function watchWebhooks(live: LiveContext, registry: Meters['registry']): Stored {
  const registers = [registry];
  const labelNames = ['webhook'];
  let names: string[] = [];
  new Counter({
    name: 'rankd_webhook_deliveries_total',
    help: "Events sent to webhooks, by the target's response: delivered, failed, refused, busy or gone.",
    labelNames: [...labelNames, 'outcome'],
    registers,
    collect() {
      this.reset();
      for (const webhook of names) for (const outcome of deliveryOutcomes) this.inc({ webhook, outcome }, 0);
      for (const { count, ...labels } of live.current.deliveries.list()) this.inc(labels, count);
    },
  });
  const enabled = new Gauge({
    name: 'rankd_webhook_enabled',
    help: '0 for a disabled webhook: you disabled it, or rankd did because its target failed for days or is gone.',
    ...{ labelNames, registers },
  });
  const backlog = new Gauge({
    name: 'rankd_webhook_backlog',
    help: 'Events that are waiting for a webhook; counts at most 1000. Daemons that share a database report the same value: use max().',
    ...{ labelNames, registers },
  });
  const oldest = new Gauge({
    name: 'rankd_webhook_oldest_seconds',
    help: 'Age of the oldest event that is waiting for a webhook; 0 if there is none. Daemons that share a database report the same value: use max().',
    ...{ labelNames, registers },
  });
  const forget = () => {
    for (const gauge of [enabled, backlog, oldest]) gauge.reset();
  };
  return {
    forget,
    async read(app) {
      const views = await viewWebhooks(app);
      const now = app.clock.now();
      forget(); // drops removed webhooks
      names = views.map(({ webhook: { name } }) => name);
      for (const view of views) {
        const labels = { webhook: view.webhook.name };
        enabled.set(labels, view.webhook.state === 'enabled' ? 1 : 0);
        backlog.set(labels, view.backlog);
        oldest.set(labels, Math.max(0, now - (view.oldestAt ?? now)) / 1000);
      }
    },
  };
}

/** Counts and times API requests. All addresses without a route share one label, so callers can't create labels. */
export function watchServer(server: FastifyInstance, meters: Meters): void {
  for (const route of server.allowedMethods.keys()) {
    meters.requests.inc({ route, status: 200, code: '' }, 0);
    meters.requestSeconds.zero({ route });
  }
  for (const [route, refusals] of server.refusals)
    for (const refusal of refusals) meters.requests.inc({ route, ...refusal }, 0);
  server.addHook('onResponse', async ({ routeOptions, notes: { error } }, { statusCode, elapsedTime }) => {
    const route = routeOptions.url ?? 'none';
    meters.requests.inc({ route, status: statusCode, code: error?.code ?? '' });
    meters.requestSeconds.observe({ route }, elapsedTime / 1000);
    const details = error?.details;
    if (error !== undefined && error.code in callerRefusals)
      meters.keyFailures.inc({ code: error.code, reason: details?.reason ?? '' });
  });
}
