import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { LimitsConfig } from '../config/config.ts';
import { newId } from '../core/api-key.ts';
import { isRankdError, RankdError } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Ranking } from '../usecases/ranking.ts';
import type { RefusedCallers } from '../usecases/refused-callers.ts';
import { answerTo } from './errors.ts';
import { bodyLimit, bodyTooLarge } from './json-body.ts';
import { answerForNode, methodNotAllowed } from './node-answers.ts';
import { apikeyRoute } from './routes/apikey.ts';
import { healthRoutes } from './routes/health.ts';
import { rankerRoute } from './routes/ranker.ts';

/** What the HTTP edge needs of the application. */
export interface HttpApp extends Ranking {
  log: Logger;
  refused: RefusedCallers;
  limits: LimitsConfig;
  /** True once the daemon is stopping: what runs is finished, nothing new is begun. */
  isDraining: boolean;
  /** Requests to the API that are not answered yet. */
  inFlight: number;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** What the request's line in the log says besides status and time. */
    facts: Record<string, unknown>;
  }
}

/** The HTTP API, not listening yet. */
export function createServer(app: HttpApp): FastifyInstance {
  const server = Fastify({
    logger: false,
    genReqId: () => newId('req'),
    bodyLimit,
    requestTimeout: 15_000,
    keepAliveTimeout: 65_000,
    http: { requireHostHeader: false, headersTimeout: 10_000 },
    routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true },
    return503OnClosing: false,
    clientErrorHandler: () => undefined,
    frameworkErrors: (error, request, reply) => void sendError(app, { error, request, reply }),
  });
  answerForNode(server.server);
  acceptAnyBody(server);
  server.decorateRequest('facts');
  server.addHook('onRequest', async (request, reply) => {
    request.facts = {};
    app.inFlight += 1;
    reply.header('x-request-id', request.id);
    if (app.isDraining && request.url.startsWith('/v1/')) {
      throw new RankdError('shutting_down', 'rankd is stopping or restarting; try again in a moment.', {
        retryAfterMs: 5_000,
      });
    }
  });
  server.addHook('onSend', async (_request, reply) => {
    if (app.isDraining) reply.header('connection', 'close');
  });
  server.addHook('onResponse', async (request, reply) => {
    app.inFlight -= 1;
    logAnswer(app, request, reply);
  });
  server.setErrorHandler((error, request, reply) => sendError(app, { error, request, reply }));

  const methods = new Map<string, string[]>();
  server.addHook('onRoute', ({ url, method }) => {
    methods.set(url, [...(methods.get(url) ?? []), ...[method].flat()]);
  });
  server.setNotFoundHandler((request, reply) => {
    const allowed = methods.get(pathOf(request.url));
    if (allowed !== undefined) reply.header('allow', allowed.join(', '));
    return sendError(app, {
      error: allowed === undefined ? notFound() : methodNotAllowed(request.method),
      request,
      reply,
    });
  });
  apikeyRoute(server, app);
  rankerRoute(server, app);
  healthRoutes(server, app);
  return server;
}

/** Bodies come as bytes, whatever they call themselves: games send JSON as text/plain or without any type. */
function acceptAnyBody(server: FastifyInstance): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  server.addHook('onRequest', async ({ raw }) => {
    if (raw.headers['content-type'] !== undefined) raw.headers['content-type'] = 'application/json';
  });
}

function sendError(
  app: HttpApp,
  { error, request, reply }: { error: unknown; request: FastifyRequest; reply: FastifyReply },
): FastifyReply {
  const known = fromFramework(error);
  const { status, headers, body } = answerTo(known, request.id);
  if (status === 500) app.log.error({ err: error, requestId: request.id }, 'request failed');
  if (known instanceof RankdError) {
    request.facts = {
      ...request.facts,
      code: known.code,
      ...(known.internal !== undefined && { internal: known.internal }),
    };
    if (status === 401 || status === 403) app.refused.count(known);
  }
  return reply
    .code(status)
    .headers({ ...headers, 'x-request-id': request.id })
    .type('application/json; charset=utf-8')
    .send(body);
}

/** Fastify's own refusals, in rankd's words. */
function fromFramework(error: unknown): unknown {
  if (isRankdError(error)) return error;
  const { code, statusCode = 500 } = Object(error) as { code?: string; statusCode?: number };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return bodyTooLarge();
  if (statusCode < 500)
    return new RankdError('invalid_request', 'The request could not be read: check its address, length and body.', {
      cause: error,
    });
  return error;
}

function notFound(): RankdError {
  return new RankdError(
    'not_found',
    'There is nothing at this address. rankd answers POST /v1/apikey and POST /v1/ranker.',
  );
}

function pathOf(url: string): string {
  const path = url.split('?', 1)[0] ?? '/';
  return path.replaceAll(/\/+/g, '/').replace(/(.)\/$/, '$1');
}

function logAnswer({ log }: HttpApp, request: FastifyRequest, { statusCode, elapsedTime }: FastifyReply): void {
  const level = statusCode >= 500 ? 'warn' : 'info';
  const { method, id, facts } = request;
  log[level](
    { requestId: id, method, path: pathOf(request.url), status: statusCode, ms: Math.round(elapsedTime), ...facts },
    'request',
  );
}
