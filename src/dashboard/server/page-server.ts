import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import { isRankdError, RankdError } from '../../base/errors.ts';
import { crypto } from '../../base/node-modules.ts';
import { closeWith, createListener } from '../../http/listener.ts';
import { readBody } from '../../http/request-body.ts';
import { pathOf } from '../../http/request-log.ts';
import { TokenBuckets } from '../../http/token-buckets.ts';
import type { LiveContext } from '../../usecases/daemon-context.ts';
import { nothingHere, sendDocument, sendFile, sendPageError } from './answers.ts';
import { Outcomes } from './outcomes.ts';
import type { PageFile } from './page-files.ts';
import { cookieIn, fieldsOf, maxBodyBytes, type Origins, requireOwnHost, requireOwnPage } from './requests.ts';
import { type Answer, type Page, type Route, routes, type Sent } from './routes.ts';
import type { Login, Session } from './sessions.ts';

/**
 * The headers of every response. With them, browsers run only the page's own files, refuse to frame the page, and send
 * no referrer.
 */
export const safeHeaders = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types rankd',
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;

export interface Site {
  origins: Origins;
  cookie: { name: string; attributes: string };
}

interface PageServerOptions {
  live: LiveContext;
  page: Page;
  files: ReadonlyMap<string, PageFile>;
  site: () => Site | undefined;
  /** Starts a stream that sends the browser the names of changed views. Throws `too_many_streams`. */
  stream: (reply: FastifyReply, session: Session) => void;
}

const maxConnections = 100;

/** The rate limit for a session's reads. The burst lets a newly opened page request several documents at once. */
const reads = { perMinute: 240, burst: 20 };
const wrongLogins = { perMinute: 10, burst: 10 };

/**
 * Creates the page's HTTP server, which is not listening yet. It sends files to any caller, but data only to the page
 * itself and only with a session.
 */
export function createPageServer({
  trustedProxies,
  ...options
}: PageServerOptions & { trustedProxies: readonly string[] }): FastifyInstance {
  const { log, clock, foreign } = options.live.current;
  const server = createListener({
    ...{ log, clock, section: 'dashboard', maxConnections, trustedProxies, foreign },
    ...{ headers: () => safeHeaders, graceMs: 1_000, notFound: nothingHere, sendError: sendPageError },
  });
  // Closes half-closed connections, because a browser that half-closes one expects no response. Node.js does not
  // document this option.
  Object.assign(server.server, { httpAllowHalfOpen: false });
  servePage(server, options);
  return server;
}

/** Mounts the page under a path of the API's server, whose limits then apply to the page. */
export async function mountPage(server: FastifyInstance, path: string, options: PageServerOptions): Promise<void> {
  await server.register(
    (scope, _options, done) => {
      // the API's hooks can refuse a request before the page's hook sets these headers
      scope.setErrorHandler((error, request, reply) =>
        sendPageError({ error, request, reply: reply.headers(safeHeaders) }),
      );
      scope.setNotFoundHandler((request, reply) => sendPageError({ error: nothingHere(), request, reply }));
      servePage(scope, { ...options, isMounted: true });
      done();
    },
    { prefix: path },
  );
}

function servePage(
  server: FastifyInstance,
  { live, page, files, isMounted = false, ...options }: PageServerOptions & { isMounted?: boolean },
): void {
  const { log, clock, requests } = live.current;
  const outcomes = new Outcomes<Answer>(clock);
  const buckets = { reads: new TokenBuckets(clock, 1_000), wrongLogins: new TokenBuckets(clock, 1) };

  const site = (): Site => {
    const known = options.site();
    if (known === undefined || page.closing.aborted || requests.isDraining) throw stopping();
    return known;
  };

  server.addHook('onRequest', (request, reply, done) => {
    if (isMounted) {
      reply.headers(safeHeaders);
      request.notes.level = 'debug'; // pages send many requests
    }
    requireOwnHost(request, site().origins);
    if (!/^[/*]/.test(request.raw.url ?? '')) throw invalidPath();
    const next = (body: Buffer | RankdError) => {
      request.body = body;
      if (!(body instanceof RankdError)) return done();
      closeWith(reply);
      done(body);
    };
    if (isMounted) next(request.body as Buffer | RankdError);
    else readBody(request.raw, next, maxBodyBytes);
  });

  /** Runs a check and counts its refusals for the audit log, because they can be signs of an attack. */
  const countingRefusals = <T>(request: FastifyRequest, work: () => T): T => {
    try {
      return work();
    } catch (error) {
      if (isRankdError(error)) {
        const header = (name: string, length: number) => String(request.headers[name] ?? '').slice(0, length);
        const path = pathOf(request.url).slice(0, 100);
        const { from } = request;
        const asked = { path, site: header('sec-fetch-site', 20), origin: header('origin', 100), from };
        live.current.refused.countAtPage(error.code, asked);
      }
      throw error;
    }
  };

  /** Returns the request's session. Throws `no_session`, or `not_from_page` if a POST lacks the page's token. */
  const sessionOf = (request: FastifyRequest): Session => {
    const session = page.sessions.find(cookieIn(request, site().cookie.name));
    if (session === undefined) throw noSession();
    if (page.sessions.isToken(session, String(request.headers['x-rankd-token'] ?? ''))) return session;
    if (request.method !== 'POST') throw noSession();
    return countingRefusals(request, () => {
      throw wrongToken();
    });
  };

  const requirePermission = ({ needs }: Route, session: Session): void => {
    if (needs === 'changing' && session.isViewOnly) throw viewOnly();
    if (needs === 'changing' && !page.sessions.mayChange(session)) throw idle();
    if (needs === 'changing') page.sessions.touch(session);
    if (needs !== 'reading') return;
    const { isAllowed, msToNext } = buckets.reads.take(session.id, reads);
    if (!isAllowed) throw tooOften('The page sent too many requests.', msToNext);
  };

  /**
   * Limits only the rate of wrong links, because any caller could use a limit on correct ones to lock out the operator.
   */
  const limitWrongLogins = (error: unknown): never => {
    if (!isRankdError(error, 'link_refused')) throw error;
    const { isAllowed, msToNext } = buckets.wrongLogins.take('all', wrongLogins);
    if (isAllowed) throw error;
    throw tooOften('Too many invalid links were tried in the last minute.', msToNext);
  };

  const answer = async (route: Route, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    countingRefusals(request, () => requireOwnPage(request, site().origins));
    if (route.needs === 'nothing') {
      const login = await route.answer(page, sentBy(request, reply)).catch(limitWrongLogins);
      return sendAnswer(reply, login);
    }
    const session = sessionOf(request);
    requirePermission(route, session);
    const work = () => route.answer(page, { ...sentBy(request, reply), session });
    const { 'idempotency-key': key } = request.headers;
    const hash = crypto().hash('sha256', `${request.url} ${request.body}`);
    const asked = { session: session.id, key, request: hash };
    const answered = await (route.needs === 'changing' ? outcomes.once(asked, work) : work());
    if (request.method === 'POST') log.info({ by: session.by, path: pathOf(request.url) }, 'request from the page');
    return sendAnswer(reply, answered);
  };

  const sentBy = (request: FastifyRequest, reply: FastifyReply): Sent => {
    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort());
    const { searchParams: query } = new URL(request.url.replace(/^\/+/, '/'), 'http://page');
    const fields = request.method === 'POST' ? fieldsOf(request) : {};
    return { app: live.current, query, fields, gone: gone.signal };
  };

  const sendAnswer = (reply: FastifyReply, { status = 200, document, login }: Answer): Promise<FastifyReply> => {
    if (login !== undefined) reply.header('set-cookie', cookieLine(site().cookie, login));
    return sendDocument(reply.code(status), document);
  };

  for (const [name, route] of Object.entries(routes)) {
    const [method, url] = name.split(' ') as [HTTPMethods, string];
    server.route({ method, url, handler: (request, reply) => answer(route, request, reply) });
  }
  server.get('/api/events', (request, reply) => {
    countingRefusals(request, () => requireOwnPage(request, site().origins));
    const session = sessionOf(request);
    if (request.method === 'HEAD') reply.headers(streamHeaders).send();
    else {
      if (isMounted) requests.count -= 1; // the API waits for open requests when it stops, but a stream never ends
      options.stream(reply, session);
    }
  });
  for (const [path, file] of files) server.get(path, (_request, reply) => sendFile(reply, file));
}

/** `x-accel-buffering` keeps reverse proxies from buffering the events. */
export const streamHeaders = { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' };

function cookieLine({ name, attributes }: Site['cookie'], login: Login | 'out'): string {
  return login === 'out'
    ? `${name}=; Max-Age=0; ${attributes}`
    : `${name}=${login.cookie}; Max-Age=${Math.floor(login.session.lifeMs / 1_000)}; ${attributes}`;
}

function noSession(): RankdError {
  return RankdError.withoutStack('no_session', 'You are not logged in here, or your session has ended.');
}

function wrongToken(): RankdError {
  const hint = 'reload the page; if that does not help, run `rankd dashboard`';
  return RankdError.withoutStack('not_from_page', "The page's token is missing or wrong.", { hint });
}

function idle(): RankdError {
  return RankdError.withoutStack('session_idle', "The page was idle for half an hour, so it can't change anything.");
}

function viewOnly(): RankdError {
  const hint = 'ask the operator for a link without --view';
  return RankdError.withoutStack('view_only', 'This session is view-only.', { hint });
}

function tooOften(message: string, retryAfterMs: number): RankdError {
  return RankdError.withoutStack('too_many_requests', message, { retryAfterMs });
}

function invalidPath(): RankdError {
  return RankdError.withoutStack('invalid_request', "The request's path must begin with a slash.");
}

function stopping(): RankdError {
  return RankdError.withoutStack('shutting_down', 'rankd is stopping.', {
    hint: 'try again in a few seconds; if it does not restart by itself: `rankd serve`',
    retryAfterMs: 5_000,
  });
}
