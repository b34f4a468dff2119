import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import type { Config } from '../../config/config.ts';
import type { Daemon } from '../../daemon/daemon.ts';
import { RecentProblems } from '../../daemon/recent-problems.ts';
import { reportToServiceManager } from '../../daemon/systemd.ts';
import { isNameTaken } from '../../usecases/keys/find-key.ts';
import type { Cli } from '../cli.ts';
import { firstSteps } from '../init/first-steps.ts';
import { examples } from '../output/help.ts';

interface ServeOptions {
  host?: string;
  port?: string;
  simulate?: boolean;
}

export function serveCommand(program: Command, cli: Cli): void {
  program
    .command('serve')
    .description('run the HTTP API in the foreground until SIGINT or SIGTERM')
    .option('--host <address>', 'address to listen on (server.host)')
    .option('--port <port>', 'port to listen on, 0 for any free one (server.port)')
    .option('--simulate', 'use the simulated group, whatever the configuration says')
    .addHelpText(
      'after',
      examples('rankd serve', 'rankd serve --port 8080', 'rankd serve --config /etc/rankd/rankd.yaml'),
    )
    .action((options: ServeOptions) => serve(cli, options));
}

async function serve(cli: Cli, options: ServeOptions): Promise<void> {
  const load = () => cli.loadConfig(flagsOf(options));
  const started = await load();
  const { config } = started;
  const { createLog, daemonStatus, listenForCommands, LiveConfig, startDaemon, tuneYoungHeap } = await import(
    '../../daemon/index.ts'
  );
  const problems = new RecentProblems();
  const log = createLog({
    level: logLevel(cli, config),
    readable: cli.io.isTerminal,
    write: (line) => cli.io.log(line),
    note: (line) => problems.note(line),
  });
  const startedAt = { at: systemClock.now(), monotonic: systemClock.monotonic() };
  await using running = new AsyncDisposableStack(); // undone in reverse: the data directory is given back last
  const daemon = await startDaemon({ config, dataDir: cli.dataDir, log });
  running.defer(() => daemon.stop());
  tuneYoungHeap();
  const live = new LiveConfig({
    app: daemon.app,
    started,
    load,
    onApplied: async (now) => {
      log.level = logLevel(cli, now);
      return warnOfDemoKey(daemon, now);
    },
  });
  running.use(
    await listenForCommands(
      { dataDir: cli.dataDir, log },
      {
        status: () =>
          daemonStatus({ ...daemon, live, process: cli.io, started: startedAt, problems: problems.newestFirst() }),
        reload: (by) => live.reload(by),
      },
    ),
  );
  running.use(live);
  const stopped = cli.io.stopSignal;
  cli.io.onReload(() => void live.reload('daemon'));
  await greet(cli, daemon, { config, isChosen: options.simulate === true });
  await warnOfDemoKey(daemon, config);
  running.use(await reportToServiceManager({ ...daemon.app, env: cli.io.env }));
  log.info({ signal: await stopped }, 'stopping: finishing what runs');
  await running.disposeAsync();
  log.info('stopped');
}

/** Says where the daemon listens, for which group, and what to do next. */
async function greet(
  cli: Cli,
  { app, url, metricsUrl }: Daemon,
  { config: { platform }, isChosen }: { config: Config; isChosen: boolean },
): Promise<void> {
  cli.print(
    { url, metricsUrl: metricsUrl ?? null, platform: platform.kind, dataDir: cli.dataDir },
    `rankd listens on ${url}`,
  );
  if (metricsUrl !== undefined) cli.say(`metrics for Prometheus: ${metricsUrl}`);
  if (platform.kind === 'simulated') {
    const wayOut = isChosen
      ? 'start it without --simulate, on what rankd.yaml says'
      : 'set group.id and platform.api_key_file in rankd.yaml';
    cli.say(`SIMULATED GROUP: nothing here touches Roblox. To rank in a real group, ${wayOut}.`);
    cli.say(
      await firstSteps(app, {
        url,
        by: cli.by,
        maySayKey: cli.io.isTerminal && !cli.options.json && !cli.options.quiet,
      }),
    );
  }
}

/** Somebody may have seen the key that was made to try rankd out. */
async function warnOfDemoKey({ app }: Daemon, { platform }: Config): Promise<string[]> {
  if (platform.kind === 'simulated' || !(await isNameTaken(app, 'demo'))) return [];
  const warning =
    'the key "demo" from the simulated group is accepted here as well; if you do not use it: rankd key revoke demo';
  app.log.warn(warning);
  return [warning];
}

function flagsOf({ host, port, simulate }: ServeOptions): Record<string, string> {
  return {
    ...(host !== undefined && { 'server.host': host }),
    ...(port !== undefined && { 'server.port': port }),
    ...(simulate && { 'platform.kind': 'simulated' }),
  };
}

function logLevel({ options }: Cli, { log }: Config): Config['log']['level'] {
  if (options.verbose) return 'debug';
  return options.quiet ? 'warn' : log.level;
}
