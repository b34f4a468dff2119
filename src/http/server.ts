import type { FastifyInstance } from 'fastify';
import { isRankdError, RankdError } from '../base/errors.ts';
import type { Config } from '../config/config.ts';
import { isSimulatedGroup } from '../core/group-title.ts';
import type { LiveContext } from '../usecases/daemon-context.ts';
import { inOrder } from './changes.ts';
import { nobloxServerRoutes } from './compat/noblox-server.ts';
import { rankgunRoutes } from './compat/rankgun.ts';
import type { Edge } from './edge.ts';
import { Freshness } from './end-of-turn.ts';
import { closeWith, createListener } from './listener.ts';
import { readBody, unpack } from './request-body.ts';
import { apikeyRoute } from './routes/apikey.ts';
import { docsRoutes } from './routes/docs.ts';
import { healthRoutes } from './routes/health.ts';
import { rankerRoute } from './routes/ranker.ts';
import { Throttle } from './throttle.ts';
import { changeRoutes } from './v2/changes.ts';
import { readRoutes } from './v2/reads.ts';
import { suspensionRoutes } from './v2/suspensions.ts';

/** The HTTP API, not listening yet. */
export function createServer(
  app: LiveContext,
  { trustedProxies, maxConnections }: Pick<Config['server'], 'trustedProxies' | 'maxConnections'>,
): FastifyInstance {
  const { log, clock, store, requests, foreign } = app.current; // these stay, whatever configuration is applied
  const server = createListener({
    ...{ log, clock, section: 'server', maxConnections, trustedProxies, foreign, notFound },
    headers: () => (isSimulatedGroup(app.current.group.title) ? simulated : nothing),
  });
  const freshness = new Freshness(() => store.freshen());
  server.addHook('onRequest', (request, reply, done) => {
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
  server.addHook('onSend', (_request, reply, _payload, done) => {
    if (requests.isDraining) closeWith(reply);
    requests.count -= 1;
    done();
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

const simulated = { 'x-simulated-group': 'true' };
const nothing = {};

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
