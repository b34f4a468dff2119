import type { Server } from 'node:http';
import type { Logger } from '../base/log.ts';
import type { Clock } from '../ports/index.ts';

const quietMs = 60_000;

/** Closes connections beyond `most` as they come, and says so in the log, once a minute at most. */
export function limitConnections(
  { log, clock }: { log: Logger; clock: Pick<Clock, 'monotonic'> },
  server: Server,
  most: number,
): void {
  let quietUntil = Number.NEGATIVE_INFINITY;
  server.maxConnections = most;
  server.on('drop', () => {
    const now = clock.monotonic();
    if (now < quietUntil) return;
    quietUntil = now + quietMs;
    log.warn({ most }, 'connections were closed: more came than server.max_connections allows');
  });
}
