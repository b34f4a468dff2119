import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from '../base/log.ts';
import type { Clock } from '../ports/index.ts';

const responses = new WeakMap<Duplex, ServerResponse[]>();

/** The responses of a connection that are still to be sent, in the order of their requests. */
export function unansweredOn(socket: Duplex): ServerResponse[] {
  const known = responses.get(socket);
  if (known !== undefined) return known;
  const unanswered: ServerResponse[] = [];
  responses.set(socket, unanswered);
  return unanswered;
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

const quietMs = 60_000;

/** Closes new connections beyond `maxConnections`, and says so in the log, at most once a minute. */
export function limitConnections(
  { log, clock }: { log: Logger; clock: Pick<Clock, 'monotonic'> },
  server: Server,
  maxConnections: number,
): void {
  let quietUntil = Number.NEGATIVE_INFINITY;
  server.maxConnections = maxConnections;
  server.on('drop', () => {
    const now = clock.monotonic();
    if (now < quietUntil) return;
    quietUntil = now + quietMs;
    log.warn({ maxConnections }, 'connections were closed: more came than server.max_connections allows');
  });
}
