import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { RankdError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { membershipOf } from '../base/net.ts';
import type { Clock } from '../ports/index.ts';
import { connectionOf } from './connections.ts';
import { endWithError } from './node-answers.ts';
import { networkOf } from './throttle.ts';
import { CountedLines } from './token-buckets.ts';

/** The maximum share of `maxConnections` for one network. */
const networkShare = 1 / 4;
/**
 * Once this share of `maxConnections` is in use, each new connection makes rankd end a request that has been arriving
 * for longer than `slowMs`.
 */
const crowdedShare = 3 / 4;
const slowMs = 1_000;

/**
 * The interval between checks for unread responses. rankd closes a connection after one to two intervals without
 * progress.
 */
const unreadMs = 15_000;

const lines = {
  all: (most: string) => `closed a connection, because the listener was at or near ${most}`,
  network: (most: string) =>
    `closed a connection, because its network had a quarter of ${most}; if a reverse proxy has that address, add it to server.trusted_proxies`,
};
const onceAMinute = { perMinute: 1, burst: 1 };

interface Limits {
  log: Logger;
  clock: Pick<Clock, 'monotonic' | 'sleep'>;
  section: string;
  maxConnections: number;
  trustedProxies: readonly string[];
  headers?: () => Readonly<Record<string, string>>;
}

/**
 * Limits a server's connections, in total and per network. At a limit, ends the request that has been arriving longest
 * or, if none is arriving, closes the connection that has been idle longest. Closes the new connection only if all
 * others that count against the limit are waiting for rankd. Also closes connections whose callers do not read their
 * responses.
 */
export function limitConnections(
  server: Server,
  { log, clock, section, maxConnections, trustedProxies, headers }: Limits,
): void {
  const open = new OpenConnections();
  const isTrusted = membershipOf(trustedProxies);
  const counted = new CountedLines(clock);
  const most = section === 'server' ? 'server.max_connections' : `the maximum of ${maxConnections} connections`;
  const close = ({ socket, isSending }: Expendable, limit: keyof typeof lines): void => {
    open.delete(socket);
    const due = counted.take(limit, onceAMinute);
    const facts = { listener: section, maxConnections, address: socket.remoteAddress };
    if (due !== undefined) log.warn({ ...facts, ...due }, lines[limit](most));
    if (isSending && socket.writableLength === 0) endWithError(socket, tooSlow(), headers?.());
    else socket.destroy();
  };

  server.on('connection', (socket: Socket) => {
    const openedAt = clock.monotonic();
    const { remoteAddress = '' } = socket; // undefined if the caller has disconnected
    const network = isTrusted(remoteAddress) ? undefined : networkOf(remoteAddress);
    const newcomer = { socket, isSending: false, isNew: true, since: openedAt };
    if (open.countOf(network) >= maxConnections * networkShare) {
      close(open.leastNeeded(network) ?? newcomer, 'network');
    } else if (open.size >= maxConnections) {
      close(open.leastNeeded() ?? newcomer, 'all');
    } else if (open.size >= maxConnections * crowdedShare) {
      const least = open.leastNeeded();
      if (least?.isSending && !least.isNew && openedAt - least.since > slowMs) close(least, 'all');
    }
    if (socket.destroyed) return;
    const opened = { network, openedAt, unread: 0, isNew: true };
    open.add(socket, opened);
    // By the end of the next turn of the event loop, Node.js has read the data that the caller has sent so far.
    setImmediate(() =>
      setImmediate(() => {
        opened.isNew = false;
      }),
    );
    socket.once('close', () => open.delete(socket));
  });

  const closed = new AbortController();
  server.once('close', () => closed.abort());
  server.once('listening', async () => {
    while (!closed.signal.aborted) {
      await clock.sleep(unreadMs, closed.signal).catch(() => undefined);
      open.closeUnread();
    }
  });
}

/** A connection that rankd can close, because it is not waiting for rankd. */
interface Expendable {
  socket: Socket;
  /**
   * True while the connection's first request, or the body of its latest one, is still arriving. False if the
   * connection is idle or its caller is not reading the responses.
   */
  isSending: boolean;
  /** True until rankd first reads from the connection, which can take a while if rankd is busy. */
  isNew: boolean;
  /**
   * The time at which the latest request's headers arrived or, before the first request, the connection opened, on
   * `Clock.monotonic()`.
   */
  since: number;
}

interface Opened {
  /** `undefined` for a trusted proxy, which forwards requests from many callers. */
  network: string | undefined;
  /** A time on `Clock.monotonic()`. */
  openedAt: number;
  /** The number of unread response bytes at the previous check. */
  unread: number;
  isNew: boolean;
}

class OpenConnections {
  readonly #open = new Map<Socket, Opened>();
  readonly #counts = new Map<string, number>();

  get size(): number {
    return this.#open.size;
  }

  countOf(network: string | undefined): number {
    return (network !== undefined && this.#counts.get(network)) || 0;
  }

  add(socket: Socket, opened: Opened): void {
    this.#open.set(socket, opened);
    this.#count(opened.network, 1);
  }

  delete(socket: Socket): void {
    const opened = this.#open.get(socket);
    if (this.#open.delete(socket)) this.#count(opened?.network, -1);
  }

  /**
   * Returns the connection that has been sending longest or, if none is sending, the one whose latest request is
   * oldest. Returns a new connection only if rankd can close no other. If `network` is given, considers only that
   * network's connections.
   */
  leastNeeded(network?: string): Expendable | undefined {
    let least: Expendable | undefined;
    for (const [socket, opened] of this.#open) {
      if (network !== undefined && opened.network !== network) continue;
      const other = expendable(socket, opened);
      if (other !== undefined && (least === undefined || isLessNeeded(other, least))) least = other;
    }
    return least;
  }

  /** Closes each connection whose unread response bytes have not decreased since the previous check. */
  closeUnread(): void {
    for (const [socket, opened] of this.#open) {
      const unread = socket.writableLength;
      if (opened.unread > 0 && unread >= opened.unread) socket.destroy();
      opened.unread = unread;
    }
  }

  #count(network: string | undefined, change: number): void {
    if (network === undefined) return;
    const count = this.countOf(network) + change;
    if (count > 0) this.#counts.set(network, count);
    else this.#counts.delete(network);
  }
}

function expendable(socket: Socket, { openedAt, isNew }: Opened): Expendable | undefined {
  const { unanswered, latestAt } = connectionOf(socket);
  if (unanswered.some(({ req, writableEnded }) => req.complete && !writableEnded)) return undefined;
  const isSending = latestAt === undefined || unanswered.some(({ req }) => !req.complete);
  return { socket, isSending, isNew, since: latestAt ?? openedAt };
}

function isLessNeeded(one: Expendable, other: Expendable): boolean {
  if (one.isNew !== other.isNew) return other.isNew;
  return one.isSending === other.isSending ? one.since < other.since : one.isSending;
}

function tooSlow(): RankdError {
  const message =
    'The request took too long to arrive, and rankd needed its connection for other callers; send it again.';
  return new RankdError('request_timeout', message);
}
