import type { Logger } from '../base/log.ts';
import type { Clock, Store } from '../ports/index.ts';

export interface ServiceManagerOptions {
  env: Record<string, string | undefined>;
  store: Pick<Store, 'ping'>;
  clock: Clock;
  log: Logger;
}

/**
 * Notifies systemd that the daemon is ready and, if the unit has a watchdog, regularly confirms that the event loop and
 * the database respond (sd_notify(3)). When disposed, reports that the daemon is stopping. Does nothing unless systemd
 * started the daemon.
 */
export async function reportToServiceManager(options: ServiceManagerOptions): Promise<AsyncDisposable> {
  const { env, log } = options;
  if (!env['NOTIFY_SOCKET']) return { [Symbol.asyncDispose]: async () => undefined };
  const stopping = new AbortController();
  await notify(options, 'READY=1');
  const periodMs = watchdogPeriodMs(env);
  const watchdog = periodMs === undefined ? undefined : feed(options, periodMs, stopping.signal);
  log.debug({ watchdogMs: periodMs ?? null }, 'notified systemd that the daemon is ready');
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await watchdog;
      await notify(options, 'STOPPING=1');
    },
  };
}

/** Returns a third of systemd's timeout, so that one late ping does no harm; `undefined` without a watchdog. */
function watchdogPeriodMs(env: ServiceManagerOptions['env']): number | undefined {
  const limitUs = Number(env['WATCHDOG_USEC']);
  return limitUs > 0 ? limitUs / 1_000 / 3 : undefined;
}

async function feed(options: ServiceManagerOptions, periodMs: number, signal: AbortSignal): Promise<void> {
  const { store, clock, log } = options;
  while (!signal.aborted) {
    await store.ping().then(
      () => notify(options, 'WATCHDOG=1'),
      (error) => log.error({ err: error }, 'the database does not respond, so systemd gets no keep-alive message'),
    );
    await clock.sleep(periodMs, signal).catch(() => undefined);
  }
}

/** Runs systemd-notify, because Node.js can't send datagrams to a Unix socket. */
async function notify({ env, log }: ServiceManagerOptions, message: string): Promise<void> {
  const { execFile } = await import('node:child_process');
  return new Promise((resolve) => {
    execFile('systemd-notify', [message], { env }, (error) => {
      if (error !== null) log.error({ err: error }, `${message} could not be sent to systemd`);
      resolve();
    });
  });
}
