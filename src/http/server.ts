import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { isRankdError, RankdError } from '../base/errors.ts';
import { membershipOf } from '../base/net.ts';
import type { Config } from '../config/config.ts';
import { isSimulatedGroup } from '../core/group-title.ts';
import type { LiveContext } from '../usecases/daemon-context.ts';
import { inOrder } from './changes.ts';
import type { Interactions } from './discord/interactions.ts';
import { Freshness } from './end-of-turn.ts';
import { closeWith, createListener } from './listener.ts';
import { readBody, unpack } from './request-body.ts';
import { type Exchange, registerRoutes } from './route.ts';
import { routes } from './routes/all.ts';
import { Throttle } from './throttle.ts';

/** Creates the HTTP API's server, which is not listening yet. */
export function createServer(
  app: LiveContext,
  { trustedProxies, maxConnections }: Pick<Config['server'], 'trustedProxies' | 'maxConnections'>,
): FastifyInstance {
  const { log, clock, store, requests, foreign } = app.current; // a reload does not replace these
  const server = createListener({
    ...{ log, clock, section: 'server', maxConnections, trustedProxies, foreign, notFound },
    headers: () => (isSimulatedGroup(app.current.group.title) ? simulated : nothing),
  });
  const isTrusted = membershipOf(trustedProxies);
  const freshness = new Freshness(() => store.freshen());
  server.addHook('onRequest', (request, reply, done) => {
    requests.count += 1;
    requests.hasSeenTls ||= arrivedOverTls(request.raw, isTrusted);
    if (request.headers.host?.includes(',')) {
      closeWith(reply);
      return done(twoHosts);
    }
    const { needsKey = false, isServed } = request.routeOptions.config;
    const isOff = isServed !== undefined && !isServed(app.current);
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
  let interactions: Promise<Interactions> | undefined;
  const discord = () => {
    interactions ??= import('./discord/interactions.ts').then(({ Interactions }) => new Interactions(throttle));
    return interactions;
  };
  if (app.current.discord !== undefined) void discord(); // loads the code before the first command
  server.addHook('onClose', async () => (await interactions)?.close());
  const answerDiscord = async (exchange: Exchange) => (await discord()).answer(exchange);
  registerRoutes(server, { live: app, throttle, inOrderOfArrival: inOrder(), answerDiscord, routes });
  return server;
}

function arrivedOverTls({ headers, socket }: IncomingMessage, isTrusted: (address: string) => boolean): boolean {
  return headers['x-forwarded-proto'] === 'https' && isTrusted(socket.remoteAddress ?? '');
}

const simulated = { 'x-simulated-group': 'true' };
const nothing = {};

const twoHosts = RankdError.withoutStack(
  'invalid_request',
  'The request has more than one host; send a single Host header.',
);

function shuttingDown(): RankdError {
  const message = 'rankd is stopping or restarting; try again in a moment.';
  return new RankdError('shutting_down', message, { retryAfterMs: 5_000 });
}

const v2Paths = routes.flatMap(({ path }) => (path.startsWith('/v2/') ? path.slice('/v2/'.length) : [])).join(', ');

function notFound(path: string): RankdError {
  const known = path.startsWith('/v2/')
    ? `The addresses under /v2 are ${v2Paths}; rankd has no sessions, applications or ranking centers.`
    : 'rankd serves POST /v1/apikey, POST /v1/ranker and the addresses under /v2.';
  return new RankdError('not_found', `This address does not exist. ${known} See /docs.`);
}
