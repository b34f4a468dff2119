import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** The state of a connection. */
export interface Connection {
  /** The responses that are still to be sent, in the order of their requests. */
  unanswered: ServerResponse[];
  /** The arrival of the latest request's head, on `Clock.monotonic()`; `undefined` if no complete head has arrived. */
  latestAt: number | undefined;
  /** True once an answer has announced the end of the connection: nothing may be sent after it. */
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
 * At most this many requests of one connection wait for answers. Games and proxies wait for one answer before they send
 * the next request.
 */
const maxUnanswered = 16;

/**
 * Records the next request of a connection. Returns false if the limit is reached: rankd then ignores this request and
 * everything after it, and closes the connection after the last answer.
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
 * One packet can hold thousands of requests. Node.js creates objects for each, and holds them until all earlier ones
 * are answered. This undocumented return value stops it: 2 means that HTTP ends here and another protocol follows.
 */
function stopParsing(socket: Duplex & { parser?: { onIncoming: () => number } }): void {
  if (socket.parser) socket.parser.onIncoming = () => 2;
}

/**
 * Removes this response and all earlier ones. A pipelined response has no socket until the earlier responses are done;
 * in that case, it is removed on `close`.
 */
export function dropAnswered(unanswered: ServerResponse[], response: ServerResponse): void {
  const drop = () => void unanswered.splice(0, unanswered.indexOf(response) + 1);
  if (response.socket !== null) drop();
  else response.once('close', drop);
}

/** Closes a connection after a response, even if its headers are already written and it waits for earlier responses. */
export function closeAfter(response: ServerResponse, socket: Duplex): void {
  if (!response.shouldKeepAlive) return; // Node will close it anyway
  response.shouldKeepAlive = false;
  response.on('close', () => endConnection(socket));
}

/** Sends these bytes and closes a connection, even if the peer does not end its side. */
export function endConnection(socket: Duplex, bytes = ''): void {
  if (socket.writable) socket.end(bytes, () => socket.destroy());
  else socket.destroy();
}
