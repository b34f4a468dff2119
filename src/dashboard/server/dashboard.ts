import type { OutgoingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { listenUrl, localUrl } from '../../base/net.ts';
import type { DashboardConfig } from '../../config/config.ts';
import { listenAt } from '../../http/listener.ts';
import type { LiveContext } from '../../usecases/daemon-context.ts';
import { makeLoginLink } from '../../usecases/upkeep/login-links.ts';
import { auditDashboard } from '../../usecases/upkeep/operator-events.ts';
import type { DaemonStatus } from '../../usecases/upkeep/status-document.ts';
import { Chart } from '../../usecases/views/chart.ts';
import { PageRuns } from '../../usecases/views/page-runs.ts';
import { watchViews } from '../../usecases/views/watch.ts';
import { readPageFiles } from './page-files.ts';
import { createPageServer, mountPage, type Site, streamHeaders } from './page-server.ts';
import { originsOf } from './requests.ts';
import type { Page } from './routes.ts';
import { type Session, type SessionKind, Sessions, sessionLifeMs, usualKind } from './sessions.ts';
import { Streams } from './streams.ts';

export interface DashboardOptions {
  live: LiveContext;
  config: DashboardConfig;
  /** The setting `server.public_url`. */
  publicUrl: string | undefined;
  /** IP addresses and networks of reverse proxies. */
  trustedProxies: readonly string[];
  /** The absolute path of the folder with the page's built files. */
  pageFolder: string;
  status: () => Promise<DaemonStatus>;
  /** The command that starts rankd on this machine, e.g. `npx rankd`. */
  typedAs: string;
}

const checkEveryMs = 60_000;
/** The number of higher ports to try if the requested one is in use. */
const nextPorts = 20;

interface Listening extends Site {
  /** `undefined` if the API's listener serves the page. */
  server?: FastifyInstance;
  /** The page's address, e.g. `http://127.0.0.1:7266`. */
  url: string;
  /**
   * The argument for `ssh -L` on another machine, e.g. `7266:127.0.0.1:7266`; null if the configuration contains the
   * page's address.
   */
  tunnel: string | null;
}

/**
 * The operator's page. Unless the configuration makes it permanent, it starts listening when a link is requested, and
 * stops after twelve hours without a session.
 */
export class Dashboard implements AsyncDisposable {
  readonly #options: DashboardOptions;
  readonly #sessions: Sessions;
  readonly streams = new Streams();
  readonly #runs = new PageRuns(() => this.streams.notify(['run']));
  readonly #page: Page;
  readonly #closing = new AbortController();
  #listening: Listening | undefined;
  #opening: Promise<Listening> | undefined;
  #wantedAt = 0;
  /** Stops watching for changes. Set while a page is connected. */
  #watched: AbortController | undefined;
  #watching: Promise<void> | undefined;

  constructor(options: DashboardOptions) {
    this.#options = options;
    const { clock } = options.live.current;
    this.#sessions = new Sessions(clock);
    this.#page = {
      ...{ sessions: this.#sessions, status: options.status, typedAs: options.typedAs, closing: this.#closing.signal },
      chart: new Chart(() => this.streams.notify(['chart', 'keys', 'status'])),
      runs: this.#runs,
    };
    void this.streams.sendHeartbeats(clock, this.#closing.signal);
    void this.#closeUnused();
  }

  get standing(): DaemonStatus['dashboard'] {
    return this.#listening === undefined ? null : { url: this.#listening.url, sessions: this.#sessions.count };
  }

  /** The page's address if the page listens permanently; null if it starts listening only when a link is requested. */
  get lastingUrl(): string | null {
    const isLasting = this.#options.config.enabled || this.#listening?.server === undefined;
    return isLasting ? (this.#listening?.url ?? null) : null;
  }

  /**
   * Starts listening, unless the page is already listening. Throws `port_taken`, `no_permission` or `config_invalid`.
   */
  async open(): Promise<Listening> {
    this.#wantedAt = this.#clock.monotonic();
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#listening ?? this.#opening;
  }

  /** Registers the page below `dashboard.path` on the API's server, which must not be listening yet. */
  async mount(server: FastifyInstance, path: string): Promise<void> {
    const { live, pageFolder } = this.#options;
    await mountPage(server, path, { ...this.#served, live, files: await readPageFiles(pageFolder, path) });
  }

  /** Records that the API's server, which serves the page, is listening on this port. */
  noteApiPort(port: number, path: string): void {
    const { config, publicUrl } = this.#options;
    const ofApi = publicUrl?.startsWith('https:') ? new URL(publicUrl).origin : undefined;
    this.#listeningAt({ port, origin: config.url ?? ofApi, path });
  }

  /** Creates a single-use login link for the operator `by`. Throws the same errors as `open`. */
  async link(
    by: string,
    kind: SessionKind = usualKind,
  ): Promise<{ url: string; expiresAt: number; tunnel: string | null }> {
    const { url, tunnel } = await this.open();
    const { secret, expiresAt } = await makeLoginLink(this.#app, { by, ...kind });
    return { url: `${url}/login#${secret}`, expiresAt, tunnel };
  }

  async logAllOut(by: string): Promise<number> {
    await this.#app.store.dropLoginLinks();
    const sessions = this.#sessions.logAllOut();
    await auditDashboard(this.#app, 'logout', { by, sessions });
    return sessions;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.streams.endAll('bye');
    await Promise.all([this.#watching, this.#runs[Symbol.asyncDispose]()]);
    await this.#opening?.catch(() => undefined);
    await this.#close();
  }

  get #app() {
    return this.#options.live.current;
  }

  get #clock() {
    return this.#app.clock;
  }

  async #open(): Promise<Listening> {
    if (this.#listening !== undefined) return this.#listening;
    const { live, trustedProxies, config } = this.#options;
    const { host, port, url } = config;
    const files = await readPageFiles(this.#options.pageFolder);
    const server = createPageServer({ ...this.#served, live, trustedProxies, files });
    const isFixed = url !== undefined || port === 0;
    const ports = Array.from({ length: isFixed ? 1 : 1 + nextPorts }, (_, index) => port + index);
    const hint = 'set dashboard.port in rankd.yaml, then restart the daemon';
    const at = { host, ports: ports.filter((one) => one <= 65_535), hint };
    const address = await listenAt(server, { section: 'dashboard' }, at);
    return this.#listeningAt({ server, port: address.port, origin: url, own: localUrl(listenUrl(address)) });
  }

  get #served() {
    return {
      ...{ page: this.#page, site: () => this.#listening },
      stream: (reply: FastifyReply, session: Session) => this.#stream(reply, session),
    };
  }

  /**
   * Records the page's addresses. `origin` is the origin of a proxy or tunnel; without one, browsers on this machine
   * use `own`.
   */
  #listeningAt({
    port,
    origin,
    own: ownOrigin = `http://127.0.0.1:${port}`,
    path = '',
    server,
  }: Pick<Listening, 'server'> & { port: number; origin: string | undefined; own?: string; path?: string }): Listening {
    const own = origin ?? ownOrigin;
    const isSecure = own.startsWith('https:');
    const cookie = {
      name: isSecure ? '__Host-rankd' : `rankd_${new URL(own).port || port}`,
      attributes: `Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`,
    };
    const tunnel = origin === undefined ? `${port}:${new URL(own).host}` : null;
    const origins = originsOf({ port, url: origin });
    this.#listening = { ...(server && { server }), url: own + path, tunnel, cookie, origins };
    this.#app.log.info({ url: own + path }, 'the dashboard is listening');
    return this.#listening;
  }

  async #close(): Promise<void> {
    const { server } = this.#listening ?? {};
    this.#listening = undefined;
    await server?.close();
  }

  async #closeUnused(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#clock.sleep(checkEveryMs, signal).catch(() => undefined);
      const now = this.#clock.monotonic();
      if (this.#sessions.count > 0) this.#wantedAt = now;
      const isUnused = now - this.#wantedAt >= sessionLifeMs && !this.#options.config.enabled;
      if (signal.aborted || this.#listening?.server === undefined || !isUnused) continue;
      await this.#close();
      this.#app.log.info('the dashboard had no session for twelve hours and stopped listening');
    }
  }

  #stream(reply: FastifyReply, session: Session): void {
    const { raw: response } = reply;
    this.streams.add(response, { ...(reply.getHeaders() as OutgoingHttpHeaders), ...streamHeaders });
    reply.hijack();
    this.#watch();
    const cancel = this.#sessions.whenEnded(session, () => this.streams.end(response, 'logout'));
    response.once('close', () => {
      cancel();
      if (this.streams.size > 0) return;
      this.#watched?.abort();
      this.#watched = undefined;
    });
  }

  #watch(): void {
    if (this.#watched !== undefined) return;
    const unread = new AbortController();
    this.#watched = unread;
    const stop = AbortSignal.any([unread.signal, this.#closing.signal]);
    const { live, status } = this.#options;
    this.#watching = watchViews({ live, status, notify: (views) => this.streams.notify(views) }, stop);
  }
}
