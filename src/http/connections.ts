import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

export interface Connection {
  /** The responses that have not been sent yet, in request order. */
  unanswered: ServerResponse[];
  /** The arrival time of the latest request's headers, on `Clock.monotonic()`; `undefined` before the first. */
  latestAt: number | undefined;
  /** True once a response has the header `connection: close`. Nothing may be sent after that response. */
  isClosing: boolean;
}

const connections = new WeakMap<Duplex, Connection>();

export function connectionOf(socket: Duplex): Connection {
  const known = connections.get(socket);
  if (known !== undefined) return known;
  const connection: Connection = { unanswered: [], latestAt: undefined, isClosing: false };
  connections.set(socket, connection);
  return connection;
}

/**
 * The maximum number of unanswered requests on one connection. Games and proxies never reach it, because they wait for
 * each response before they send the next request.
 */
const maxUnanswered = 16;

/**
 * Records a connection's next request. At the limit, returns false, ignores any further input, and closes the
 * connection after the last pending response.
 */
export function noteRequest(
  connection: Connection,
  { response, at }: { response: ServerResponse; at: number },
): boolean {
  const { unanswered } = connection;
  const last = unanswered[maxUnanswered - 1];
  if (last === undefined) {
    unanswered.push(response);
    connection.latestAt = at;
    return true;
  }
  const { socket } = response.req;
  stopParsing(socket);
  closeAfter(last, socket);
  return false;
}

/**
 * Stops Node.js from parsing more pipelined requests. One packet can contain thousands, and their objects would stay in
 * memory until the requests before them are answered. The undocumented return value 2 tells the parser that the
 * connection switches to a different protocol.
 */
function stopParsing(socket: Duplex & { parser?: { onIncoming: () => number } }): void {
  if (socket.parser) socket.parser.onIncoming = () => 2;
}

/**
 * Removes a response and all responses before it. A pipelined response has no socket while it is waiting for those
 * before it, and is removed on `close`.
 */
export function dropAnswered(unanswered: ServerResponse[], response: ServerResponse): void {
  const drop = () => void unanswered.splice(0, unanswered.indexOf(response) + 1);
  if (response.socket !== null) drop();
  else response.once('close', drop);
}

/**
 * Closes a connection after a response, even if that response is queued behind others with its headers already written.
 */
export function closeAfter(response: ServerResponse, socket: Duplex): void {
  if (!response.shouldKeepAlive) return; // Node will close it anyway
  response.shouldKeepAlive = false;
  response.on('close', () => endConnection(socket));
}

/** Sends the bytes and closes the connection, even if the peer does not close its side. */
export function endConnection(socket: Duplex, bytes = ''): void {
  if (socket.writable) socket.end(bytes, () => socket.destroy());
  else socket.destroy();
}
