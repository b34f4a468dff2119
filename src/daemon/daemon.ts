import type { FastifyInstance } from 'fastify';
import { type AppOptions, openApp, type ServedApp } from '../app.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import { closeAll, openAll } from '../base/close-all.ts';
import { asRankdError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { isLoopback, listenUrl } from '../base/net.ts';
import type { LinkOutcome, LinkRequest } from '../control/control.ts';
import type { Dashboard, DashboardOptions } from '../dashboard/server/dashboard.ts';
import { listenAt } from '../http/listener.ts';
import { createServer } from '../http/server.ts';
import type { Metrics } from '../metrics/open-metrics.ts';
import type { OpenOptions } from '../ports/index.ts';
import { engineOf } from '../stores/engine.ts';
import { declareConfigured } from '../usecases/declare-configured.ts';
import { checkGroup } from '../usecases/group/check-group.ts';
import { AuditHeadWriter } from './audit-head-writer.ts';
import { startWorkers, warnOfPlatform } from './workers.ts';

interface DaemonOptions extends AppOptions, Pick<OpenOptions, 'onNew' | 'onMigrated'> {
  log: Logger;
  /** The environment variable that set the port; absent if a setting did. */
  portFrom?: string | undefined;
  portHint?: string | undefined;
  beforeListening?: (app: ServedApp, server: FastifyInstance) => Promise<void>;
}

export interface Daemon {
  app: ServedApp;
  url: string;
  metricsUrl: string | undefined;
  heads: AuditHeadWriter;
  /** Rejects new requests that need a key, finishes running ones, saves buffered data, and closes everything. */
  stop(): Promise<void>;
}

const drainPollMs = 20;

export function startDaemon(options: DaemonOptions): Promise<Daemon> {
  return openAll(async (closers) => {
    const clock = options.overrides?.clock ?? systemClock;
    closers.push(await engineOf({ ...options, clock, server: options.config.store }).operations.lockDaemon());
    const { server: address, metrics: metricsConfig } = options.config;
    const metrics = metricsConfig.enabled ? await loadMetrics(clock) : undefined;
    const app = await openApp({ ...options, ...(metrics !== undefined && { watch: metrics.watch }) });
    closers.push(app);
    closers.push(warnOfPlatform(app));
    await checkGroup(app.current);
    for (const note of await declareConfigured(app.current, options.config)) app.current.log.warn(note);
    await app.takeEffect();
    const heads = new AuditHeadWriter();
    await heads.note(app.current);
    const server = createServer(app, options.config.server);
    closers.push(() => server.close());
    await options.beforeListening?.(app, server);
    const { trustedProxies } = address;
    const listener = await metrics?.serve({ app, server }, { ...metricsConfig, trustedProxies });
    if (listener !== undefined) closers.push(listener);
    const url = await listen(server, options);
    closers.push(startWorkers(app, heads));
    return {
      app,
      url,
      metricsUrl: listener?.url,
      heads,
      stop: async () => {
        await drain(app);
        await closeAll(closers);
      },
    };
  });
}

async function loadMetrics(clock: Clock): Promise<Metrics> {
  const { openMetrics } = await import('../metrics/open-metrics.ts');
  return openMetrics(clock);
}

async function listen(
  server: FastifyInstance,
  { log, config, portFrom, portHint }: Pick<DaemonOptions, 'log' | 'config' | 'portFrom' | 'portHint'>,
): Promise<string> {
  const { host, port, publicUrl } = config.server;
  const hint = portHint ?? `rankd serve --port ${port === 7365 ? 7465 : 7365}`; // 7266 is the dashboard's
  const at = await listenAt(server, { section: 'server' }, { host, ports: [port], hint, portFrom });
  const url = listenUrl(at);
  const hasProxy = publicUrl?.startsWith('https:') ?? false;
  if (!isLoopback(at.address) && !hasProxy) log.warn({ url, problem: 'plain http', hint: haveProxy }, plainHttp);
  return url;
}

const plainHttp =
  'other machines can reach rankd over plain HTTP, so anyone on the network path can read the keys: put a reverse proxy with TLS in front of it';

const haveProxy =
  'if there is already such a proxy, set server.public_url to its https address, or list it in server.trusted_proxies and have it send X-Forwarded-Proto: https';

/** Waits for every request to finish, but no longer than a second past the longest deadline. */
async function drain({ current: { requests, clock }, maxDeadlineMs }: ServedApp): Promise<void> {
  requests.isDraining = true;
  const giveUpAt = clock.monotonic() + maxDeadlineMs + 1_000;
  while (requests.count > 0 && clock.monotonic() < giveUpAt) await clock.sleep(drainPollMs);
}

/** Loads the dashboard on first use, because many operators never use it. */
export class LazyDashboard implements AsyncDisposable {
  readonly #options: DashboardOptions;
  #loading: Promise<Dashboard> | undefined;
  #dashboard: Dashboard | undefined;

  constructor(options: DashboardOptions) {
    this.#options = options;
  }

  get standing(): Dashboard['standing'] {
    return this.#dashboard?.standing ?? null;
  }

  get lastingUrl(): string | null {
    return this.#dashboard?.lastingUrl ?? null;
  }

  async mount(server: FastifyInstance): Promise<void> {
    const { path } = this.#options.config;
    if (path !== undefined) await (await this.#load()).mount(server, path);
  }

  /**
   * Does nothing unless `dashboard.enabled` or `dashboard.path` is set. `url` is the API's address. Throws the same
   * errors as `Dashboard.open`.
   */
  async openIfEnabled(url: string): Promise<void> {
    const { path } = this.#options.config;
    if (path !== undefined) this.#dashboard?.noteApiPort(Number(new URL(url).port || 80), path);
    else if (this.#options.config.enabled) await (await this.#load()).open();
  }

  /** Never rejects. */
  async link({ by, isViewOnly, hours }: LinkRequest): Promise<LinkOutcome> {
    try {
      return { state: 'made', ...(await (await this.#load()).link(by, { isViewOnly, lifeMs: hours * 3_600_000 })) };
    } catch (cause) {
      const { code, message, hint } = asRankdError(cause);
      return { state: 'refused', code, message, hint };
    }
  }

  /** Also invalidates links that an earlier process stored. */
  async logAllOut(by: string): Promise<{ sessions: number }> {
    return { sessions: await (await this.#load()).logAllOut(by) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.#loading?.catch(() => undefined))?.[Symbol.asyncDispose]();
  }

  #load(): Promise<Dashboard> {
    this.#loading ??= import('../dashboard/server/dashboard.ts').then(({ Dashboard }) => {
      this.#dashboard = new Dashboard(this.#options);
      return this.#dashboard;
    });
    return this.#loading;
  }
}
