import type { FastifyInstance } from 'fastify';
import { type AppOptions, openApp, type ServedApp } from './app.ts';
import { RankdError } from './errors.ts';
import { createServer, type HttpApp } from './http/server.ts';
import type { Logger } from './log.ts';
import { acquireDaemonLock } from './stores/sqlite/daemon-lock.ts';
import { checkLadder } from './usecases/check-ladder.ts';
import { startWorkers } from './workers.ts';

export interface DaemonOptions extends AppOptions {
  log: Logger;
}

/** A daemon that listens. */
export interface Daemon {
  app: ServedApp;
  /** e.g. `http://127.0.0.1:7265` */
  url: string;
  /** Finishes what runs, refuses what is new, settles the books and closes everything. */
  stop(): Promise<void>;
}

const drainPollMs = 20;

/** Starts the HTTP API and its workers on a data directory that no other daemon has. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  await using starting = new AsyncDisposableStack();
  starting.use(await acquireDaemonLock(options.dataDir));
  const app = starting.use(await openApp(options));
  await app.store.forgetTickets('daemon_'); // of a daemon that was killed: the lock says that there is no other
  await checkLadder(app);
  const server = createServer(app);
  starting.defer(() => server.close());
  const url = await listen(server, options.config.server);
  starting.defer(startWorkers(app));
  const running = starting.move();
  return {
    app,
    url,
    stop: async () => {
      await drain(app);
      await running.disposeAsync();
    },
  };
}

async function listen(server: FastifyInstance, { host, port }: { host: string; port: number }): Promise<string> {
  try {
    return await server.listen({ host, port });
  } catch (cause) {
    const { code } = Object(cause) as { code?: string };
    const where = `${host}:${port}`;
    if (code === 'EADDRINUSE') {
      throw new RankdError('port_taken', `Another program already listens on ${where}.`, {
        cause,
        hint: 'stop it, or choose another port: rankd serve --port 7266',
      });
    }
    if (code === 'EACCES') {
      throw new RankdError('no_permission', `This user may not listen on ${where}.`, {
        cause,
        hint: 'choose a port from 1024 up: rankd serve --port 7265',
      });
    }
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
      throw new RankdError('config_invalid', `${host} is not an address of this machine.`, {
        cause,
        hint: 'set server.host to 127.0.0.1, or to 0.0.0.0 for all addresses',
      });
    }
    throw cause;
  }
}

/** Waits until every request has its answer; none takes longer than the deadline. */
async function drain(app: HttpApp): Promise<void> {
  app.isDraining = true;
  const giveUpAt = app.clock.monotonic() + app.deadlineMs + 1_000;
  while (app.inFlight > 0 && app.clock.monotonic() < giveUpAt) await app.clock.sleep(drainPollMs);
}
