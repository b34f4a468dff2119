import type { FastifyInstance } from 'fastify';
import { Counter, Gauge } from 'prom-client';
import type { ErrorCode } from '../base/errors.ts';
import { changeSurprises } from '../usecases/change/platform-trust.ts';
import { type LiveContext, surprisesOf } from '../usecases/daemon-context.ts';
import { viewWebhooks } from '../usecases/webhooks/view-webhooks.ts';
import type { Meters } from './meters.ts';

/** What is read when the metrics are asked for: the queues, the budget, and whether the credential works. */
export function watchApp(live: LiveContext, { registry }: Meters): void {
  const registers = [registry];
  new Gauge({
    name: 'rankd_http_requests_in_flight',
    help: 'Requests that are not answered yet.',
    registers,
    collect() {
      this.set(live.current.requests.count);
    },
  });
  new Gauge({
    name: 'rankd_credential_accepted',
    help: '0 while Roblox is not called because it does not accept the Roblox key.',
    registers,
    collect() {
      this.set(live.current.deadCredential() === undefined ? 1 : 0);
    },
  });
  new Counter({
    name: 'rankd_platform_surprises_total',
    help: 'What Roblox did that rankd was not built for, in the answer to a call or (operation "change") in what became of a rank change.',
    labelNames: ['operation', 'what'],
    registers,
    collect() {
      this.reset();
      for (const what of changeSurprises) this.inc({ operation: 'change', what }, 0);
      for (const { operation, what, count } of surprisesOf(live.current)) this.inc({ operation, what }, count);
    },
  });
  watchWebhooks(live, registry);
  new Gauge({
    name: 'rankd_platform_trusted',
    help: '0 while no rank is changed because Roblox behaves otherwise than rankd was built for.',
    registers,
    collect() {
      this.set(live.current.trust.stop === undefined ? 1 : 0);
    },
  });
  const labelNames = ['operation'];
  const paces = {
    limit: ['rankd_platform_budget_limit', 'Calls that Roblox allows per window.'],
    left: ['rankd_platform_budget_left', 'Calls that could start now.'],
    waiting: ['rankd_platform_queue_depth', 'Calls that wait for their turn.'],
  } as const;
  for (const [field, [name, help]] of Object.entries(paces) as Array<[keyof typeof paces, [string, string]]>) {
    new Gauge({
      name,
      help,
      labelNames,
      registers,
      collect() {
        this.reset(); // removes the operations of an earlier platform
        for (const pace of live.current.platform.pace()) this.set({ operation: pace.operation }, pace[field]);
      },
    });
  }
  new Counter({
    name: 'rankd_platform_queue_admitted_total',
    help: 'Calls that had their turn.',
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { operation, admitted } of live.current.platform.pace()) this.inc({ operation }, admitted);
    },
  });
  new Counter({
    name: 'rankd_platform_queue_wait_seconds_total',
    help: 'How long those calls waited for it, all together.',
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { operation, waitedMs } of live.current.platform.pace()) this.inc({ operation }, waitedMs / 1000);
    },
  });
}

/** Names of webhooks are the operator's own. */
function watchWebhooks(live: LiveContext, registry: Meters['registry']): void {
  const registers = [registry];
  new Counter({
    name: 'rankd_webhook_deliveries_total',
    help: 'Events that were sent to webhooks, by what the target made of them: delivered, failed, refused, busy or gone.',
    labelNames: ['webhook', 'outcome'],
    registers,
    collect() {
      this.reset();
      for (const { count, ...labels } of live.current.deliveries.list()) this.inc(labels, count);
    },
  });
  new Gauge({
    name: 'rankd_webhook_backlog',
    help: 'Events that a webhook is still to get; more than 1000 are not counted.',
    labelNames: ['webhook'],
    registers,
    async collect() {
      this.reset();
      for (const { webhook, backlog } of await viewWebhooks(live.current)) this.set({ webhook: webhook.name }, backlog);
    },
  });
  new Gauge({
    name: 'rankd_webhook_oldest_seconds',
    help: 'How old the oldest event is that a webhook is still to get; 0 if there is none.',
    labelNames: ['webhook'],
    registers,
    async collect() {
      this.reset();
      const now = live.current.clock.now();
      for (const { webhook, oldestAt = now } of await viewWebhooks(live.current))
        this.set({ webhook: webhook.name }, Math.max(0, now - oldestAt) / 1000);
    },
  });
}

/** Refusals because of the caller, rather than because of the request. */
const ofCallers = new Set<ErrorCode>([
  'missing_authorization',
  'invalid_key',
  'key_not_allowed',
  'place_not_whitelisted',
  'key_paused',
]);

/** Counts and times the requests to the API. All addresses without a route share one label, so that no caller can make labels. */
export function watchServer(server: FastifyInstance, meters: Meters): void {
  server.addHook('onResponse', async ({ routeOptions, notes: { error } }, { statusCode, elapsedTime }) => {
    const route = routeOptions.url ?? 'none';
    meters.requests.inc({ route, status: statusCode, code: error?.code ?? '' });
    meters.requestSeconds.observe({ route }, elapsedTime / 1000);
    if (error !== undefined && ofCallers.has(error.code)) {
      meters.keyFailures.inc({ code: error.code, reason: error.details?.reason ?? '' });
    }
  });
}
