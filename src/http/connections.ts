import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** What is known of a connection. */
export interface Connection {
  /** The responses that are still to be sent, in the order of their requests. */
  unanswered: ServerResponse[];
  /** When the head of its latest request had arrived, on `Clock.monotonic()`; `undefined`: it never sent a whole one. */
  latestAt: number | undefined;
  /** True once an answer says that the connection ends with it: nothing may be sent after that. */
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

/** How many requests of one connection may wait for their answers. Games and proxies wait for one before they send the next. */
const maxUnanswered = 16;

/**
 * Notes the next request of a connection. False if it is one too many: it gets no answer, nothing behind it is looked at, and the
 * connection ends with the answer to the last that was noted.
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
 * Node.js makes objects for each of the thousands of requests that one packet can hold, and keeps them until those before are
 * answered. It does not document this way to stop it: 2 says, as for another protocol, that HTTP ends here.
 */
function stopParsing(socket: Duplex & { parser?: { onIncoming: () => number } }): void {
  if (socket.parser) socket.parser.onIncoming = () => 2;
}

/**
 * Drops this response and all before it. A response has no socket while it waits for the responses to earlier requests of
 * its connection: then it is dropped once it is closed.
 */
export function dropAnswered(unanswered: ServerResponse[], response: ServerResponse): void {
  const drop = () => void unanswered.splice(0, unanswered.indexOf(response) + 1);
  if (response.socket !== null) drop();
  else response.once('close', drop);
}

/** Closes a connection after a response, even if its headers are written already and it waits for earlier responses. */
export function closeAfter(response: ServerResponse, socket: Duplex): void {
  if (!response.shouldKeepAlive) return; // it will be closed anyway
  response.shouldKeepAlive = false;
  response.on('close', () => endConnection(socket));
}

/** Ends a connection after these bytes, even if the peer does not end its side. */
export function endConnection(socket: Duplex, bytes = ''): void {
  if (socket.writable) socket.end(bytes, () => socket.destroy());
  else socket.destroy();
}
