import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { codeOf } from '../../base/error-code.ts';
import { RankdError } from '../../base/errors.ts';
import { listenError } from '../../base/listen-error.ts';
import { http } from '../../base/node-modules.ts';
import { nextRequestId } from '../../http/request-id.ts';
import { safeHeaders } from './headers.ts';

export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  requestId: string;
}

/** So many ports after the one that is asked for are tried if others have it. */
const nextPorts = 20;
const maxConnections = 100;

/** A server for the page that listens. Every answer has the headers that keep the page safe, also those that Node.js gives by itself. */
export async function listen(
  { host, port, isFixed }: { host: string; port: number; isFixed: boolean },
  answer: (exchange: Exchange) => Promise<void>,
): Promise<{ server: Server; address: AddressInfo }> {
  const server = http().createServer(
    // By default, Node takes the first of two lines "Host", and answers a request without one by itself.
    { ...limits, joinDuplicateHeaders: true, ...{ requireHostHeader: false } },
    (request, response) => {
      const requestId = nextRequestId();
      for (const [name, value] of Object.entries(safeHeaders)) response.setHeader(name, value);
      response.setHeader('x-request-id', requestId);
      void answer({ request, response, requestId });
    },
  );
  server.maxConnections = maxConnections;
  server.on('clientError', (_error, socket) => refuse(socket as Socket, '400 Bad Request'));
  server.on('connect', (_request, socket) => refuse(socket as Socket, '405 Method Not Allowed'));
  const last = isFixed || port === 0 ? port : Math.min(65_535, port + nextPorts);
  for (let tried = port; ; tried += 1) {
    try {
      server.listen(tried, host === 'localhost' ? '127.0.0.1' : host);
      await once(server, 'listening');
      return { server, address: server.address() as AddressInfo };
    } catch (cause) {
      if (codeOf(cause) === 'EADDRINUSE' && tried < last) continue;
      const hint = 'set dashboard.port in rankd.yaml, then restart the daemon';
      throw listenError(cause, { host, port, section: 'dashboard', hint });
    }
  }
}

const limits = {
  requestTimeout: 15_000,
  headersTimeout: 10_000,
  keepAliveTimeout: 10_000,
  connectionsCheckingInterval: 1_000,
};

/** Answers what is no request that can be handled, and ends the connection. */
function refuse(socket: Socket, status: string): void {
  const headers = Object.entries(safeHeaders).map(([name, value]) => `${name}: ${value}`);
  const head = [`HTTP/1.1 ${status}`, ...headers, 'content-length: 0', 'connection: close'];
  if (socket.writable) socket.end(`${head.join('\r\n')}\r\n\r\n`, () => socket.destroy());
  else socket.destroy();
}

/** The path and the query of a request. Throws `invalid_request`. */
export function addressOf({ url = '/' }: IncomingMessage): URL {
  if (url.startsWith('/') && URL.canParse(url, 'http://page')) return new URL(url.replace(/^\/+/, '/'), 'http://page');
  throw RankdError.withoutStack('invalid_request', 'The request has no address that can be read.');
}
