import type { FastifyInstance } from 'fastify';
import { type AppOptions, openApp, type ServedApp } from './app.ts';
import { deadlineIn } from './clock.ts';
import { RankdError } from './errors.ts';
import { createServer, type HttpApp } from './http/server.ts';
import type { Logger } from './log.ts';
import { acquireDaemonLock } from './stores/sqlite/daemon-lock.ts';
import { checkLadder } from './usecases/check-ladder.ts';
import { recoverChanges } from './usecases/recover-changes.ts';
import { credentialWarnings } from './usecases/watch-credential.ts';

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

const recoverEveryMs = 2_000;
const checkEveryMs = 3_600_000;
const flushEveryMs = 60_000;
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

/** Settles what was left open, looks after the credential, keeps what is gathered in memory. Returns what stops all. */
function startWorkers(app: HttpApp): () => Promise<void> {
  const stopping = new AbortController();
  const reported = new Set<string>();
  const recovery = every(app, recoverEveryMs, stopping.signal, () =>
    recoverChanges(
      { ...app },
      {
        stop: stopping.signal,
        report: (change, error) => {
          if (!reported.has(change.id))
            app.log.warn({ err: error, changeId: change.id }, 'a change is not settled yet; trying on');
          reported.add(change.id);
        },
      },
    ),
  );
  const credential = every(app, checkEveryMs, stopping.signal, async () => {
    using deadline = deadlineIn(app.clock, app.deadlineMs);
    const signal = AbortSignal.any([deadline.signal, stopping.signal]);
    const warnings = await credentialWarnings(app, { signal, deadlineAt: deadline.at, lane: 'credential' });
    for (const warning of warnings) app.log.warn(warning);
  });
  const flushes = { 'refused callers': app.refused, 'uses of keys': app.keyUses };
  const flushing = Object.values(flushes).map((gathered) =>
    every(app, flushEveryMs, stopping.signal, () => gathered.flush(app)),
  );
  return async () => {
    stopping.abort();
    await Promise.all([recovery, credential, ...flushing]);
    // A store that can't be written any more is no reason to end as a failure: what runs has been finished.
    for (const [what, gathered] of Object.entries(flushes)) {
      await gathered.flush(app).catch((error) => app.log.warn({ err: error }, `the last ${what} could not be kept`));
    }
  };
}

async function every(
  { clock, log }: HttpApp,
  ms: number,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    await work().catch((error) => log.error({ err: error }, 'background work failed; trying again'));
    await clock.sleep(ms, signal).catch(() => undefined);
  }
}

/** Waits until every request has its answer; none takes longer than the deadline. */
async function drain(app: HttpApp): Promise<void> {
  app.isDraining = true;
  const giveUpAt = app.clock.monotonic() + app.deadlineMs + 1_000;
  while (app.inFlight > 0 && app.clock.monotonic() < giveUpAt) await app.clock.sleep(drainPollMs);
}
