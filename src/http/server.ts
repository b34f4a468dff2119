import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { isRankdError, RankdError } from '../base/errors.ts';
import type { Config } from '../config/config.ts';
import { isSimulatedGroup } from '../core/group-title.ts';
import type { DaemonContext, LiveContext } from '../usecases/daemon-context.ts';
import { inOrder } from './changes.ts';
import { nobloxServerRoutes } from './compat/noblox-server.ts';
import { rankgunRoutes } from './compat/rankgun.ts';
import { limitConnections } from './connection-limits.ts';
import { connectionOf, dropAnswered, noteRequest } from './connections.ts';
import type { Edge } from './edge.ts';
import { Freshness } from './end-of-turn.ts';
import { sendError } from './errors.ts';
import { answerForNode, methodNotAllowed } from './node-answers.ts';
import { readBody, unpack } from './request-body.ts';
import { nextRequestId } from './request-id.ts';
import { type Notes, pathOf, requestLog } from './request-log.ts';
import { apikeyRoute } from './routes/apikey.ts';
import { docsRoutes } from './routes/docs.ts';
import { healthRoutes } from './routes/health.ts';
import { rankerRoute } from './routes/ranker.ts';
import { Throttle } from './throttle.ts';
import { changeRoutes } from './v2/changes.ts';
import { readRoutes } from './v2/reads.ts';
import { suspensionRoutes } from './v2/suspensions.ts';

declare module 'fastify' {
  interface FastifyRequest {
    notes: Notes;
  }
}

/** A constant, because the types for Node.js 22 lack some of these options and refuse unknown ones in a literal. */
const nodeOptions = {
  requireHostHeader: false,
  // By default, Node uses the first of two lines of a header; a proxy in front of rankd may use the other.
  joinDuplicateHeaders: true,
  headersTimeout: 10_000,
  // By default, Node checks for overdue requests only every 30 s.
  connectionsCheckingInterval: 1_000,
};

/** The HTTP API, not listening yet. */
export function createServer(
  app: LiveContext,
  { trustedProxies, maxConnections }: Pick<Config['server'], 'trustedProxies' | 'maxConnections'>,
): FastifyInstance {
  const { log, clock, store, requests } = app.current; // these stay, whatever configuration is applied
  const server = Fastify({
    logger: false,
    schemaController: { compilersFactory: { buildValidator: withoutSchemas, buildSerializer: withoutSchemas } },
    genReqId: nextRequestId,
    trustProxy: trustedProxies.length > 0 && trustedProxies,
    requestTimeout: 15_000,
    keepAliveTimeout: 65_000,
    http: nodeOptions,
    routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true },
    return503OnClosing: false,
    clientErrorHandler: () => undefined,
    frameworkErrors: (error, request, reply) => {
      if (!begin(app.current, request, reply)) return;
      void sendError({ error, request, reply });
      dropAnswered(request.notes.unanswered, reply.raw); // Fastify calls no hooks for these
    },
  });
  answerForNode(server.server);
  limitConnections({ log, clock }, server.server, { maxConnections, trustedProxies });
  leaveBodiesAlone(server);
  const logAnswer = requestLog({ log, clock });
  const freshness = new Freshness(() => store.freshen());
  server.decorateRequest('notes');
  // These hooks take a callback: with a promise each, the hooks alone would cost a tenth of a verification.
  server.addHook('onRequest', (request, reply, done) => {
    if (!begin(app.current, request, reply)) return;
    requests.count += 1;
    if (request.headers.host?.includes(',')) {
      closeWith(reply);
      return done(twoHosts);
    }
    const { needsKey, family } = request.routeOptions.config;
    const isOff = family !== undefined && !app.current.compat.includes(family.name);
    if (requests.isDraining && needsKey && !isOff) return done(shuttingDown());
    readBody(request.raw, (body) => {
      if (body instanceof RankdError) {
        closeWith(reply);
        return done(body);
      }
      const unpacked = unpack(body, request.headers['content-encoding']);
      request.body = unpacked;
      if (isOff) reply.callNotFound();
      else if (isRankdError(unpacked, 'body_too_large')) done(unpacked);
      else if (needsKey) freshness.wait(done);
      else done();
    });
  });
  server.addHook('onSend', (request, reply, _payload, done) => {
    // Node reads nothing after a request for another protocol, even if it is answered in this one.
    if (requests.isDraining || request.headers.upgrade !== undefined) closeWith(reply);
    requests.count -= 1;
    dropAnswered(request.notes.unanswered, reply.raw);
    logAnswer(request, reply);
    done();
  });
  // By then every answer was sent. A caller who does not read theirs, or never sends a whole request, would be waited for forever.
  server.addHook('preClose', async () => server.server.closeAllConnections());
  server.setErrorHandler((error, request, reply) => sendError({ error, request, reply }));

  const methods = new Map<string, string[]>();
  server.addHook('onRoute', ({ url, method, config }) => {
    if (config?.family !== undefined) return; // where it is off, there is nothing at all
    methods.set(url, [...(methods.get(url) ?? []), ...[method].flat()]);
  });
  server.setNotFoundHandler((request, reply) => {
    const allowed = methods.get(pathOf(request.url));
    if (allowed !== undefined) reply.header('allow', allowed.join(', '));
    const error = allowed === undefined ? notFound(pathOf(request.url)) : methodNotAllowed(request.method, allowed);
    return sendError({ error, request, reply });
  });
  const throttle = new Throttle(clock, store.limits);
  server.addHook('onClose', () => throttle.close());
  const edge: Edge = { live: app, throttle, inOrderOfArrival: inOrder() };
  apikeyRoute(server, edge);
  rankerRoute(server, edge);
  changeRoutes(server, edge);
  readRoutes(server, edge);
  suspensionRoutes(server, edge);
  rankgunRoutes(server, edge);
  nobloxServerRoutes(server, edge);
  healthRoutes(server, app);
  docsRoutes(server);
  return server;
}

/** The connection ends with this answer. */
function closeWith(reply: FastifyReply): void {
  reply.header('connection', 'close');
  connectionOf(reply.request.raw.socket).isClosing = true;
}

/** zod checks the bodies, so Fastify's own validator and serializer are not loaded. */
function withoutSchemas(): never {
  throw new Error('routes of rankd have no Fastify schemas');
}

/** False if this is one request too many on its connection: it is not handled. */
function begin(
  { clock, group }: Pick<DaemonContext, 'clock' | 'group'>,
  request: FastifyRequest,
  reply: FastifyReply,
): boolean {
  const connection = connectionOf(request.raw.socket);
  const arrivedAt = clock.monotonic();
  if (!noteRequest(connection, { response: reply.raw, at: arrivedAt })) return false;
  const { unanswered } = connection;
  request.notes = {
    arrivedAt,
    unanswered,
    level: 'info',
    facts: noFacts,
    error: undefined,
    failure: undefined,
    warning: undefined,
  };
  reply.header('x-request-id', request.id);
  if (isSimulatedGroup(group.title)) reply.header('x-simulated-group', 'true');
  return true;
}

const noFacts: Notes['facts'] = {};

/** Fastify would refuse bodies that are not sent as JSON. */
function leaveBodiesAlone(server: FastifyInstance): void {
  for (const method of server.supportedMethods) {
    server.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  }
}

const twoHosts = RankdError.withoutStack(
  'invalid_request',
  'The request has more than one host; send one line "Host".',
);

function shuttingDown(): RankdError {
  const message = 'rankd is stopping or restarting; try again in a moment.';
  return new RankdError('shutting_down', message, { retryAfterMs: 5_000 });
}

function notFound(path: string): RankdError {
  const known = path.startsWith('/v2/')
    ? 'Of /v2, rankd has rank, promote, demote, member, roles and workspace; it has no sessions, applications and ranking centers.'
    : 'rankd answers POST /v1/apikey and POST /v1/ranker.';
  return new RankdError('not_found', `There is nothing at this address. ${known} /docs tells more.`);
}
