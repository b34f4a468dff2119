import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Fastify from 'fastify';
import { codeOf, type RankdError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { listenError, membershipOf, senderOf } from '../base/net.ts';
import type { Clock } from '../ports/index.ts';
import type { ForeignProtocols } from '../usecases/daemon-context.ts';
import { limitConnections } from './connection-limits.ts';
import { connectionOf, dropAnswered, noteRequest } from './connections.ts';
import { sendError } from './errors.ts';
import { answerForNode, methodNotAllowed, methodsOfAnyPath } from './node-answers.ts';
import { type Notes, nextRequestId, pathOf, requestLog } from './request-log.ts';

declare module 'fastify' {
  interface FastifyRequest {
    notes: Notes;
    /** The address of the connection's peer, or the caller's address as reported by a trusted proxy. */
    from: string;
  }
  interface FastifyInstance {
    /** The methods that each path accepts. Excludes routes that a setting can disable. */
    allowedMethods: ReadonlyMap<string, readonly string[]>;
  }
}

interface ListenerOptions {
  log: Logger;
  clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /** The listener's section in the configuration. The listener's request log lines contain it, except for `server`. */
  section: 'server' | 'dashboard' | 'metrics';
  maxConnections: number;
  /** IP addresses and networks of reverse proxies. */
  trustedProxies: readonly string[];
  /** Headers for every response, including the responses that replace Node.js's own. */
  headers?: () => Readonly<Record<string, string>>;
  /** The time that requests have to finish once the listener closes. */
  graceMs?: number;
  notFound: (path: string) => RankdError;
  sendError?: typeof sendError;
  /** Counts connections that use a protocol other than HTTP/1.1. */
  foreign?: ForeignProtocols;
}

/**
 * Not a literal in the call, because TypeScript rejects unknown options in literals and the types for Node.js 22 lack
 * some of these.
 */
const nodeOptions = {
  requireHostHeader: false,
  // By default, Node.js ignores a second header of some names, such as Host and Authorization, while a proxy in front
  // of rankd may use the second one.
  joinDuplicateHeaders: true,
  headersTimeout: 10_000,
  // By default, Node.js checks for overdue requests only every 30 s.
  connectionsCheckingInterval: 1_000,
};

/**
 * Creates an HTTP listener that limits connections, pipelining, unread responses and request times, sends errors as
 * JSON, and adds a request id to every response. `listenAt` opens the port.
 */
export function createListener(options: ListenerOptions): FastifyInstance {
  const { log, clock, trustedProxies, graceMs = 0, sendError: send = sendError } = options;
  const begin = beginning(options);
  const server = Fastify({
    logger: false,
    schemaController: { compilersFactory: { buildValidator: withoutSchemas, buildSerializer: withoutSchemas } },
    genReqId: nextRequestId,
    requestTimeout: 15_000,
    keepAliveTimeout: 65_000,
    http: nodeOptions,
    routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true },
    return503OnClosing: false,
    clientErrorHandler: () => undefined,
    frameworkErrors: (error, request, reply) => {
      if (!begin(request, reply)) return;
      void send({ error, request, reply });
      dropAnswered(request.notes.unanswered, reply.raw); // Fastify calls no hooks for these errors
    },
  });
  answerForNode(server.server, options);
  limitConnections(server.server, options);
  leaveBodiesAlone(server);
  const logAnswer = requestLog({ log, clock });
  const isTrusted = membershipOf(trustedProxies);
  server.decorateRequest('notes');
  server.decorateRequest('from', {
    getter(this: FastifyRequest) {
      const { socket, headers } = this.raw;
      return senderOf(socket.remoteAddress, headers['x-forwarded-for'], isTrusted);
    },
  });
  // These two hooks are not async, because async hooks would make a key verification take a tenth longer.
  server.addHook('onRequest', (request, reply, done) => {
    if (begin(request, reply)) done();
  });
  server.addHook('onSend', (request, reply, _payload, done) => {
    // After an Upgrade request, Node.js reads no more requests from the connection, even if the response is HTTP.
    if (request.headers.upgrade !== undefined) closeWith(reply);
    dropAnswered(request.notes.unanswered, reply.raw);
    logAnswer(request, reply);
    done();
  });
  // Without this hook, a caller that does not read its response or never completes its request could prevent the
  // listener from ever closing.
  server.addHook('preClose', async () => {
    if (graceMs === 0) return server.server.closeAllConnections();
    const late = setTimeout(() => server.server.closeAllConnections(), graceMs);
    server.server.once('close', () => clearTimeout(late));
  });
  server.setErrorHandler((error, request, reply) => send({ error, request, reply }));

  const methods = new Map<string, string[]>();
  server.decorate('allowedMethods', methods);
  server.addHook('onRoute', ({ url, method, config }) => {
    // a wrong method gets 404 on a route that a setting can disable, because a disabled route must not list its methods
    if (config?.isServed !== undefined) return;
    methods.set(url, [...(methods.get(url) ?? []), ...[method].flat()]);
  });
  server.setNotFoundHandler((request, reply) => {
    const path = pathOf(request.url);
    const allowed = path === '*' ? methodsOfAnyPath : methods.get(path);
    if (allowed !== undefined) reply.header('allow', allowed.join(', '));
    const error = allowed === undefined ? options.notFound(path) : methodNotAllowed(request.method, allowed);
    return send({ error, request, reply });
  });
  return server;
}

/** Listens on the first free port in `ports`. Throws `port_taken`, `no_permission` or `config_invalid`. */
export async function listenAt(
  server: FastifyInstance,
  { section }: Pick<ListenerOptions, 'section'>,
  { host, ports, ...ofError }: { host: string; ports: readonly number[]; hint: string; portFrom?: string | undefined },
): Promise<AddressInfo> {
  await server.ready();
  for (const [index, port] of ports.entries()) {
    try {
      server.server.listen(port, host === 'localhost' ? '127.0.0.1' : host);
      await once(server.server, 'listening');
      break;
    } catch (cause) {
      if (codeOf(cause) === 'EADDRINUSE' && index < ports.length - 1) continue;
      throw listenError(cause, { host, port, section, ...ofError });
    }
  }
  return server.server.address() as AddressInfo;
}

/** Closes the connection after this response. */
export function closeWith(reply: FastifyReply): void {
  reply.header('connection', 'close');
  connectionOf(reply.request.raw.socket).isClosing = true;
}

/**
 * Returns a function that sets a request's notes and its response headers. That function returns false if the request
 * exceeds the connection's limit and must be ignored.
 */
function beginning({
  clock,
  section,
  headers,
}: ListenerOptions): (request: FastifyRequest, reply: FastifyReply) => boolean {
  const facts: Notes['facts'] = section === 'server' ? {} : { listener: section };
  const level = section === 'server' ? 'info' : 'debug'; // the page refetches often, and Prometheus scrapes
  return (request, reply) => {
    const connection = connectionOf(request.raw.socket);
    const arrivedAt = clock.monotonic();
    if (!noteRequest(connection, { response: reply.raw, at: arrivedAt })) return false;
    const { unanswered } = connection;
    const unknown = { error: undefined, failure: undefined, warning: undefined };
    request.notes = { arrivedAt, unanswered, level, facts, ...unknown };
    reply.header('x-request-id', request.id);
    if (headers !== undefined) reply.headers(headers());
    return true;
  };
}

/** Stops Fastify from loading its own validator and serializer, because rankd uses zod. */
function withoutSchemas(): never {
  throw new Error("rankd's routes have no Fastify schemas");
}

/** Disables Fastify's body parsing, which would reject bodies whose content type is missing or unknown. */
function leaveBodiesAlone(server: FastifyInstance): void {
  for (const method of server.supportedMethods) {
    server.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  }
}
