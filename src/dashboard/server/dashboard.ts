import { once } from 'node:events';
import type { Server } from 'node:http';
import { isRankdError, RankdError } from '../../base/errors.ts';
import { listenUrl, localUrl } from '../../base/listen-url.ts';
import type { DashboardConfig } from '../../config/config.ts';
import { TokenBuckets } from '../../http/token-buckets.ts';
import type { LiveContext } from '../../usecases/daemon-context.ts';
import type { DaemonStatus } from '../../usecases/documents/status.ts';
import { tellDashboard } from '../../usecases/upkeep/tell-dashboard.ts';
import { Chart } from '../../usecases/views/chart.ts';
import { PageUndos } from '../../usecases/views/page-undo.ts';
import { watchViews } from '../../usecases/views/watch.ts';
import { sendDocument, sendError, sendFile } from './answers.ts';
import { addressOf, type Exchange, listen } from './listener.ts';
import { type PageFile, readPageFiles } from './page-files.ts';
import { cookieIn, type Origins, originsOf, readFields, requireOwnHost, requireOwnPage } from './requests.ts';
import type { Answer, Page, Route } from './route.ts';
import { routes } from './routes.ts';
import { type Login, type Session, Sessions, sessionLifeMs } from './sessions.ts';
import { Streams } from './streams.ts';

export interface DashboardOptions {
  live: LiveContext;
  config: DashboardConfig;
  /** Where the build put the files of the page: an absolute path. */
  pageFolder: string;
  /** What `rankd status` is told. */
  status: () => Promise<DaemonStatus>;
}

/** A session reads so often; a page that is just opened asks for every view at once. */
const reads = { perMinute: 240, burst: 20 };
const wrongLogins = { perMinute: 10, burst: 10 };
/** Of refusals, in the audit: whoever sends thousands must not fill the disk. */
const toldRefusals = { perMinute: 10, burst: 10 };
const lookEveryMs = 60_000;

/** What is there while the page listens. */
interface Listening {
  server: Server;
  origins: Origins;
  /** e.g. `http://127.0.0.1:7266` */
  url: string;
  cookie: { name: string; attributes: string };
  files: ReadonlyMap<string, PageFile>;
}

/** The page for the operator: nothing listens until a link is asked for, and nothing does any more once nobody was logged in for long. */
export class Dashboard implements AsyncDisposable {
  readonly #options: DashboardOptions;
  readonly #sessions: Sessions;
  /** The pages that are told what changes. */
  readonly streams = new Streams();
  readonly #undos = new PageUndos(() => this.streams.tell(['run']));
  readonly #page: Page;
  readonly #buckets: Record<'reads' | 'wrongLogins' | 'refusals', TokenBuckets>;
  readonly #closing = new AbortController();
  #listening: Listening | undefined;
  #opening: Promise<Listening> | undefined;
  #wantedAt = 0;
  /** Ends the watch that is on. */
  #watched: AbortController | undefined;
  #watching: Promise<void> | undefined;

  constructor(options: DashboardOptions) {
    this.#options = options;
    const { clock } = options.live.current;
    this.#sessions = new Sessions(clock);
    this.#page = {
      ...{ sessions: this.#sessions, status: options.status, closing: this.#closing.signal },
      chart: new Chart(() => this.streams.tell(['chart', 'keys', 'status'])),
      undos: this.#undos,
    };
    const buckets = () => new TokenBuckets(clock, 1_000);
    this.#buckets = { reads: buckets(), wrongLogins: buckets(), refusals: buckets() };
    void this.streams.breathe(clock, this.#closing.signal);
    void this.#closeUnused();
  }

  /** Where it listens, and how many are logged in; null while it does not listen. */
  get standing(): DaemonStatus['dashboard'] {
    return this.#listening === undefined ? null : { url: this.#listening.url, sessions: this.#sessions.count };
  }

  /** Listens, if it does not yet. Throws `port_taken`, `no_permission` or `config_invalid`. */
  async open(): Promise<Listening> {
    this.#wantedAt = this.#clock.monotonic();
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#listening ?? this.#opening;
  }

  /** A link that logs in once. `by` is the operator who asks for it. Throws as `open`. */
  async link(by: string): Promise<{ url: string; expiresAt: number }> {
    const { url } = await this.open();
    await tellDashboard(this.#app, 'link', { by });
    const { secret, expiresAt } = this.#sessions.newLink(by);
    return { url: `${url}/login#${secret}`, expiresAt };
  }

  /** Logs everybody out. Resolves with how many that were. */
  async logAllOut(by: string): Promise<number> {
    const sessions = this.#sessions.logAllOut();
    await tellDashboard(this.#app, 'logout', { by, sessions });
    return sessions;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.streams.endAll('bye');
    await Promise.all([this.#watching, this.#undos[Symbol.asyncDispose]()]);
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
    const { host, port, url } = this.#options.config;
    const files = await readPageFiles(this.#options.pageFolder);
    const { server, address } = await listen({ host, port, isFixed: url !== undefined }, (exchange) =>
      this.#answer(exchange),
    );
    const own = url ?? localUrl(listenUrl(address));
    const isSecure = own.startsWith('https:');
    const cookie = {
      name: isSecure ? '__Host-rankd' : `rankd_${new URL(own).port || address.port}`,
      attributes: `Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`,
    };
    this.#listening = { server, url: own, cookie, files, origins: originsOf({ port: address.port, url }) };
    this.#app.log.info({ url: own }, 'the page for the operator listens');
    return this.#listening;
  }

  async #close(): Promise<void> {
    const { server } = this.#listening ?? {};
    this.#listening = undefined;
    if (server === undefined) return;
    server.close();
    server.closeIdleConnections();
    const closed = once(server, 'close');
    const late = setTimeout(() => server.closeAllConnections(), 1_000);
    await closed;
    clearTimeout(late);
  }

  /** Nothing listens any more once nobody was logged in for as long as a session lasts. */
  async #closeUnused(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#clock.sleep(lookEveryMs, signal).catch(() => undefined);
      const now = this.#clock.monotonic();
      if (this.#sessions.isWanted) this.#wantedAt = now;
      const isUnused = now - this.#wantedAt >= sessionLifeMs && !this.#options.config.enabled;
      if (signal.aborted || this.#listening === undefined || !isUnused) continue;
      await this.#close();
      this.#app.log.info('the page for the operator was not used for long, and listens no more');
    }
  }

  async #answer(exchange: Exchange): Promise<void> {
    const { request, response } = exchange;
    try {
      await this.#answerOrThrow(exchange);
    } catch (cause) {
      if (response.headersSent || response.destroyed) return void response.destroy();
      const error = await sendError(exchange, cause);
      const { method, url } = request;
      const facts = {
        requestId: exchange.requestId,
        method,
        path: url?.split('?', 1)[0]?.slice(0, 100),
        code: error.code,
      };
      if (error.code === 'internal') this.#app.log.error({ err: cause, ...facts }, 'the page could not be answered');
      else this.#app.log.debug(facts, 'the page was refused something');
    }
  }

  async #answerOrThrow(exchange: Exchange): Promise<void> {
    const { request, response } = exchange;
    const listening = this.#listening;
    if (listening === undefined || this.#closing.signal.aborted || this.#app.requests.isDraining) throw stopping();
    requireOwnHost(request, listening.origins);
    const { pathname, searchParams } = addressOf(request);
    if (!pathname.startsWith('/api/')) return this.#sendFile(exchange, listening, pathname);
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    const isStream = pathname === '/api/events' && method === 'GET';
    const route = routes[`${method} ${pathname}`];
    if (route === undefined && !isStream) throw this.#noRoute(exchange, pathname);
    await this.#noting(exchange, () => requireOwnPage(request, listening.origins));
    if (route?.needs === 'nobody') return this.#logIn(exchange, { listening, route });
    const session = await this.#sessionOf(exchange, { listening, needsToken: !isStream });
    if (route === undefined) return this.#stream(exchange, session);
    this.#requireLeave(route, session);
    const fields = method === 'POST' ? await readFields(request) : {};
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    if (route.needs === 'changing') this.#sessions.touch(session);
    const asked = { app: this.#app, query: searchParams, fields, session, gone: gone.signal };
    const answer = await route.answer(this.#page, asked);
    await this.#send(exchange, listening, answer);
    if (method === 'POST') this.#app.log.info({ by: session.by, path: pathname }, 'by the page');
  }

  async #logIn(
    exchange: Exchange,
    { listening, route }: { listening: Listening; route: Extract<Route, { needs: 'nobody' }> },
  ): Promise<void> {
    const fields = await readFields(exchange.request);
    const sent = { app: this.#app, query: new URLSearchParams(), fields, gone: new AbortController().signal };
    const answer = await route.answer(this.#page, sent).catch((error) => {
      // A link that is right is let in however many were wrong: or whoever can open a connection could keep the operator out.
      const { isAllowed, msToNext } = this.#buckets.wrongLogins.take('all', wrongLogins);
      if (!isRankdError(error, 'link_refused') || isAllowed) throw error;
      throw RankdError.withoutStack('too_many_requests', 'There were too many wrong links a minute.', {
        retryAfterMs: msToNext,
      });
    });
    await this.#send(exchange, listening, answer);
  }

  async #send(exchange: Exchange, { cookie }: Listening, { status, document, login }: Answer): Promise<void> {
    if (login !== undefined) exchange.response.setHeader('set-cookie', cookieLine(cookie, login));
    await sendDocument({ ...exchange, ...(status !== undefined && { status }) }, document);
  }

  /** Whoever is logged in. Throws `no_session`, and `not_from_page` if what is to be changed comes without the page's token. */
  async #sessionOf(
    exchange: Exchange,
    { listening, needsToken }: { listening: Listening; needsToken: boolean },
  ): Promise<Session> {
    const { request } = exchange;
    const session = this.#sessions.find(cookieIn(request, listening.cookie.name));
    if (session === undefined) throw noSession();
    const token = String(request.headers['x-rankd-token'] ?? '');
    if (!needsToken || this.#sessions.isToken(session, token)) return session;
    if (request.method !== 'POST') throw noSession();
    return this.#noting(exchange, () => {
      throw RankdError.withoutStack('not_from_page', 'The token of the page is missing or wrong.', {
        hint: 'reload the page; if that does not help: rankd dashboard',
      });
    });
  }

  #requireLeave({ needs }: Route, session: Session): void {
    if (needs === 'changing' && !this.#sessions.mayChange(session))
      throw RankdError.withoutStack('session_idle', 'Nobody was at the page for half an hour, so it only shows now.');
    if (needs !== 'reading') return;
    const { isAllowed, msToNext } = this.#buckets.reads.take(session.id, reads);
    if (isAllowed) return;
    throw RankdError.withoutStack('too_many_requests', 'The page asks too often.', { retryAfterMs: msToNext });
  }

  #stream({ response }: Exchange, session: Session): void {
    this.streams.add(response);
    this.#watch();
    const forget = this.#sessions.whenEnded(session, () => this.streams.end(response, 'logout'));
    response.once('close', () => {
      forget();
      if (this.streams.size > 0) return;
      this.#watched?.abort();
      this.#watched = undefined;
    });
  }

  /** Looks at what the page shows as long as somebody listens. */
  #watch(): void {
    if (this.#watched !== undefined) return;
    const nobody = new AbortController();
    this.#watched = nobody;
    const stop = AbortSignal.any([nobody.signal, this.#closing.signal]);
    const { live, status } = this.#options;
    this.#watching = watchViews({ live, status, tell: (views) => this.streams.tell(views) }, stop);
  }

  #sendFile(exchange: Exchange, { files }: Listening, path: string): void {
    const { method = '' } = exchange.request;
    const file = files.get(path);
    if (file === undefined) throw nothingAt();
    if (method !== 'GET' && method !== 'HEAD') throw wrongMethod(exchange, ['GET', 'HEAD']);
    sendFile(exchange, file);
  }

  #noRoute(exchange: Exchange, path: string): RankdError {
    const known = [...Object.keys(routes), 'GET /api/events'].map((name) => name.split(' ') as [string, string]);
    const methods = known.filter(([, at]) => at === path).map(([method]) => method);
    return methods.length === 0 ? nothingAt() : wrongMethod(exchange, methods);
  }

  /** Does what may refuse a request, and keeps in the audit that it did: somebody may be trying something. */
  async #noting<T>({ request }: Exchange, work: () => T): Promise<T> {
    try {
      return work();
    } catch (error) {
      if (isRankdError(error) && this.#buckets.refusals.take('all', toldRefusals).isAllowed) {
        const site = String(request.headers['sec-fetch-site'] ?? '').slice(0, 20);
        const origin = String(request.headers.origin ?? '').slice(0, 100);
        const detail = { code: error.code, path: request.url?.split('?', 1)[0]?.slice(0, 100), site, origin };
        await tellDashboard(this.#app, 'refuse', { by: 'daemon', ...detail });
      }
      throw error;
    }
  }
}

function cookieLine({ name, attributes }: Listening['cookie'], login: Login | 'out'): string {
  return login === 'out'
    ? `${name}=; Max-Age=0; ${attributes}`
    : `${name}=${login.cookie}; Max-Age=${sessionLifeMs / 1_000}; ${attributes}`;
}

function noSession(): RankdError {
  return RankdError.withoutStack('no_session', 'Nobody is logged in here, or not any more.');
}

function nothingAt(): RankdError {
  return RankdError.withoutStack('not_found', 'There is nothing at this address.', { hint: 'the page is at /' });
}

function wrongMethod({ response }: Exchange, allowed: string[]): RankdError {
  response.setHeader('allow', allowed.join(', '));
  return RankdError.withoutStack('method_not_allowed', `Send ${allowed.join(' or ')}.`);
}

function stopping(): RankdError {
  return RankdError.withoutStack('shutting_down', 'rankd is stopping.', { hint: 'rankd serve', retryAfterMs: 5_000 });
}
