import { isRankdError, RankdError } from '../../base/errors.ts';
import { TokenBuckets } from '../../http/token-buckets.ts';
import type { DaemonContext, LiveContext } from '../../usecases/daemon-context.ts';
import { tellDashboard } from '../../usecases/upkeep/tell-dashboard.ts';
import { sendDocument, sendError, sendFile } from './answers.ts';
import { addressOf, type Exchange } from './listener.ts';
import type { PageFile } from './page-files.ts';
import { cookieIn, type Origins, readFields, requireOwnHost, requireOwnPage } from './requests.ts';
import type { Answer, Page, Route } from './route.ts';
import { routes } from './routes.ts';
import { type Login, type Session, sessionLifeMs } from './sessions.ts';

/** What browsers see of a page that listens. */
export interface Site {
  origins: Origins;
  cookie: { name: string; attributes: string };
  files: ReadonlyMap<string, PageFile>;
}

interface HandlerOptions {
  live: LiveContext;
  page: Page;
  /** Goes on telling this browser what changes. Throws `too_many_streams`. */
  stream: (response: Exchange['response'], session: Session) => void;
}

/** A session reads so often; a page that is just opened asks for every view at once. */
const reads = { perMinute: 240, burst: 20 };
const wrongLogins = { perMinute: 10, burst: 10 };
/** Of refusals, in the audit: whoever sends thousands must not fill the disk. */
const toldRefusals = { perMinute: 10, burst: 10 };

/** Answers the page's requests: the files to everybody, the rest to whoever is logged in and asks from the page itself. */
export class PageHandler {
  readonly #options: HandlerOptions;
  readonly #buckets: Record<'reads' | 'wrongLogins' | 'refusals', TokenBuckets>;

  constructor(options: HandlerOptions) {
    this.#options = options;
    const buckets = () => new TokenBuckets(options.live.current.clock, 1_000);
    this.#buckets = { reads: buckets(), wrongLogins: buckets(), refusals: buckets() };
  }

  get #app(): DaemonContext {
    return this.#options.live.current;
  }

  /** Answers a request; what is wrong with it is told, and never thrown. */
  async answer(exchange: Exchange, site: Site | undefined): Promise<void> {
    const { request, response } = exchange;
    try {
      await this.#answerOrThrow(exchange, site);
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

  async #answerOrThrow(exchange: Exchange, site: Site | undefined): Promise<void> {
    const { request, response } = exchange;
    if (site === undefined || this.#options.page.closing.aborted || this.#app.requests.isDraining) throw stopping();
    requireOwnHost(request, site.origins);
    const { pathname, searchParams } = addressOf(request);
    if (!pathname.startsWith('/api/')) return this.#sendFile(exchange, site, pathname);
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    const isStream = pathname === '/api/events' && method === 'GET';
    const route = routes[`${method} ${pathname}`];
    if (route === undefined && !isStream) throw this.#noRoute(exchange, pathname);
    await this.#noting(exchange, () => requireOwnPage(request, site.origins));
    if (route?.needs === 'nobody') return this.#logIn(exchange, { site, route });
    const session = await this.#sessionOf(exchange, { site, needsToken: !isStream });
    if (route === undefined) return this.#options.stream(exchange.response, session);
    this.#requireLeave(route, session);
    const fields = method === 'POST' ? await readFields(request) : {};
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    if (route.needs === 'changing') this.#options.page.sessions.touch(session);
    const asked = { app: this.#app, query: searchParams, fields, session, gone: gone.signal };
    const answer = await route.answer(this.#options.page, asked);
    await this.#send(exchange, site, answer);
    if (method === 'POST') this.#app.log.info({ by: session.by, path: pathname }, 'by the page');
  }

  async #logIn(
    exchange: Exchange,
    { site, route }: { site: Site; route: Extract<Route, { needs: 'nobody' }> },
  ): Promise<void> {
    const fields = await readFields(exchange.request);
    const sent = { app: this.#app, query: new URLSearchParams(), fields, gone: new AbortController().signal };
    const answer = await route.answer(this.#options.page, sent).catch((error) => {
      // A link that is right is let in however many were wrong: or whoever can open a connection could keep the operator out.
      const { isAllowed, msToNext } = this.#buckets.wrongLogins.take('all', wrongLogins);
      if (!isRankdError(error, 'link_refused') || isAllowed) throw error;
      throw RankdError.withoutStack('too_many_requests', 'There were too many wrong links a minute.', {
        retryAfterMs: msToNext,
      });
    });
    await this.#send(exchange, site, answer);
  }

  async #send(exchange: Exchange, { cookie }: Site, { status, document, login }: Answer): Promise<void> {
    if (login !== undefined) exchange.response.setHeader('set-cookie', cookieLine(cookie, login));
    await sendDocument({ ...exchange, ...(status !== undefined && { status }) }, document);
  }

  /** Whoever is logged in. Throws `no_session`, and `not_from_page` if what is to be changed comes without the page's token. */
  async #sessionOf(exchange: Exchange, { site, needsToken }: { site: Site; needsToken: boolean }): Promise<Session> {
    const { request } = exchange;
    const session = this.#options.page.sessions.find(cookieIn(request, site.cookie.name));
    if (session === undefined) throw noSession();
    const token = String(request.headers['x-rankd-token'] ?? '');
    if (!needsToken || this.#options.page.sessions.isToken(session, token)) return session;
    if (request.method !== 'POST') throw noSession();
    return this.#noting(exchange, () => {
      throw RankdError.withoutStack('not_from_page', 'The token of the page is missing or wrong.', {
        hint: 'reload the page; if that does not help: rankd dashboard',
      });
    });
  }

  #requireLeave({ needs }: Route, session: Session): void {
    if (needs === 'changing' && !this.#options.page.sessions.mayChange(session))
      throw RankdError.withoutStack('session_idle', 'Nobody was at the page for half an hour, so it only shows now.');
    if (needs !== 'reading') return;
    const { isAllowed, msToNext } = this.#buckets.reads.take(session.id, reads);
    if (isAllowed) return;
    throw RankdError.withoutStack('too_many_requests', 'The page asks too often.', { retryAfterMs: msToNext });
  }

  #sendFile(exchange: Exchange, { files }: Site, path: string): void {
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

function cookieLine({ name, attributes }: Site['cookie'], login: Login | 'out'): string {
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
