import { Counter, Gauge } from 'prom-client';
import type { LiveContext } from '../usecases/daemon-context.ts';
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
    help: '0 while the platform is not called because it does not accept the credential.',
    registers,
    collect() {
      this.set(live.current.deadCredential() === undefined ? 1 : 0);
    },
  });
  const labelNames = ['operation'];
  const paces = {
    limit: ['rankd_platform_budget_limit', 'Calls that the platform allows per window.'],
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
