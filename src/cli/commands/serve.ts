import { localUrl } from '../../base/net.ts';
import { paints, plain } from '../../base/paint.ts';
import type { System } from '../../base/system.ts';
import type { Config } from '../../config/config.ts';
import type { LoadedConfig } from '../../config/load.ts';
import type { Daemon } from '../../daemon/daemon.ts';
import type { Ports } from '../../ports/index.ts';
import { createKey, isAnyKeyAccepted, type KeyRequest, listKeys } from '../../usecases/keys/keys.ts';
import { servingDocument } from '../../usecases/upkeep/daemon-document.ts';
import type { Cli } from '../cli.ts';
import { command, flag, option, type ValuesOf } from '../command.ts';
import { namingDaemon } from '../daemon-here.ts';
import { isColored } from '../output/table.ts';

const serveOptions = {
  host: option('--host <address>', 'address to listen on (server.host)'),
  port: option('--port <port>', 'port to listen on, 0 for any free one (server.port)'),
  simulate: flag('--simulate', 'use the simulated group, even if the configuration names a real one'),
  console: flag('--console', 'run each line of standard input as a command; `stop` ends the daemon'),
};

export const serveCommand = command({
  name: 'serve',
  about: 'run the daemon, with its HTTP API, in the foreground until Ctrl-C or SIGTERM',
  options: serveOptions,
  examples: ['rankd serve', 'rankd serve --port 8080', 'rankd serve --config /etc/rankd/rankd.yaml'],
  run: (cli, options) => serve(cli, options),
});

/**
 * Runs the daemon until a stop signal, or until `stop` on its console. Prints `onceReady` once the daemon is listening.
 */
export async function serve(given: Cli, options: ValuesOf<typeof serveOptions>, onceReady?: string): Promise<void> {
  const { console, cli } = options.console ? given.onConsole() : { console: undefined, cli: given };
  const load = () => cli.loadConfig(flagsOf(options));
  const started = await load();
  if (started.config.store === undefined && /^postgres(ql)?:/i.test(cli.io.env['DATABASE_URL'] ?? ''))
    cli.say(unusedDatabase);
  cli.sayTemporaryDir();
  const { runDaemon } = await import('../../daemon/run-daemon.ts');
  const { dataDir } = cli;
  const readableLog = cli.io.isTerminal && (given.io.showsProgress && isColored(cli.io.env) ? paints : plain);
  let isNew = false;
  const onNew = () => {
    isNew = true;
  };
  const serving = runDaemon({
    ...{ started, load, dataDir, process: cli.io, readableLog, onMigrated: cli.onMigrated, onNew },
    logLevelOf: (config) => logLevel(cli, config),
    asTyped: linesAsTyped(cli, { isJson: !readableLog }),
  });
  await using running = await serving.catch(async (error) => {
    throw await namingDaemon(dataDir, error);
  });
  const stopped = console === undefined ? cli.io.stopSignal : Promise.race([cli.io.stopSignal, console.stopped]);
  cli.io.onReload(() => void running.reload('daemon'));
  await greet(cli, running.daemon, { started, isNew, isChosen: options.simulate });
  if (onceReady !== undefined) cli.say(onceReady);
  await using _commands = console;
  await console?.open({ dataDir: cli.dataDir, configFile: started.file });
  if (console !== undefined) cli.say('Type commands here, such as: rankd status. Type stop to stop rankd.');
  await running.stopOn(stopped);
}

/** DATABASE_URL may belong to a different program, so rankd does not use it automatically. */
const unusedDatabase = 'DATABASE_URL is set but not used; to use it: RANKD_STORE_URL=$DATABASE_URL';

/**
 * Rewrites the commands in log lines to match this installation. A quick test skips the many lines that contain none.
 */
function linesAsTyped(cli: Cli, { isJson }: { isJson: boolean }): (line: string) => string {
  return (line) => (line.includes('rankd ') ? cli.asTyped(line, { isJson }) : line);
}

async function greet(
  cli: Cli,
  { app, url, metricsUrl }: Daemon,
  { started, isNew, isChosen }: { started: LoadedConfig; isNew: boolean; isChosen: boolean },
): Promise<void> {
  const { platform } = started.config;
  const from = started.portFrom === undefined ? '' : ` (from ${started.portFrom})`;
  cli.print(servingDocument({ url, metricsUrl, dataDir: cli.dataDir }, platform), `rankd listens on ${url}${from}`);
  if (metricsUrl !== undefined) cli.say(`metrics for Prometheus: ${metricsUrl}`);
  if (platform.kind === 'simulated') {
    const realGroupHint = isChosen
      ? 'start rankd without --simulate, and run rankd init first if it has no settings yet'
      : 'rankd init';
    cli.say(`SIMULATED GROUP: nothing here touches Roblox. To rank in a real group: ${realGroupHint}`);
    cli.say(
      await firstSteps(app.current, {
        url: localUrl(url),
        by: cli.by,
        system: cli.io.system,
        mayPrintKey: cli.io.isTerminal && cli.io.typedAs !== '' && !cli.options.json && !cli.options.quiet,
      }),
    );
    return;
  }
  if (isNew && started.config.store === undefined) cli.say(newDisk(cli.dataDir));
  if (!(await isAnyKeyAccepted(app.current, app.current.group))) {
    cli.say(noKey((await cli.isOnServer()) ? keysElsewhere : keysInOtherDirectory(cli.dataDir)));
  }
}

/** Some hosting platforms give each release an empty disk. */
function newDisk(dataDir: string): string {
  return `The database in ${dataDir} is new: it has no history, no suspensions and no keys created by commands. If rankd ran here before, they were lost with its disk.
To keep them, use a persistent disk or PostgreSQL (RANKD_STORE_URL). To keep only the keys and the workspace id that games use, set RANKD_KEYS and RANKD_WORKSPACE_ID.`;
}

/** `existingKeys` explains how to copy keys that a previous installation, such as a trial, stored elsewhere. */
function noKey(existingKeys: string): string {
  return `No game key is accepted yet, so no game can do anything. If your game already has a key, ${existingKeys}.
try: rankd key create my-game`;
}

const keysElsewhere = 'it is in a different database: stop all daemons, then `rankd store copy --from WHERE --to URL`';
const keysInOtherDirectory = (dataDir: string) =>
  `it is in a different data directory than ${dataDir}: \`rankd backup FILE\` there, then stop this daemon and \`rankd restore FILE\` here`;

function flagsOf({ host, port, simulate }: ValuesOf<typeof serveOptions>): Record<string, string> {
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

const demoPlace = 1;
const demoMember = 1001;
const demoKey: KeyRequest = { name: 'demo', mode: 'live', scopes: ['verify', 'rank'], isSimulated: true };

/** Returns the next steps for a new user. Creates a demo key if no key exists and `mayPrintKey` is set. */
async function firstSteps(
  ports: Pick<Ports, 'store' | 'clock'>,
  { url, by, mayPrintKey, system }: { url: string; by: string; mayPrintKey: boolean; system: System },
): Promise<string> {
  if ((await listKeys(ports, { limit: 1 })).keys.length > 0) return 'Keys: rankd key list';
  if (!mayPrintKey)
    return `There is no key yet. Create one: rankd key create demo, then rankd whitelist add ${demoPlace}`;
  const place = { id: demoPlace, note: 'made for the first run' };
  const { secret } = await createKey(ports, { ...demoKey, place, by });
  return `
rankd created a demo key, with place ${demoPlace} on its whitelist. The key works only on this simulated group, so you need not save it:

  ${secret}

Verify it:

  ${system.post({ url: `${url}/v1/apikey`, secret, body: { placeid: demoPlace } })}

Make member ${demoMember} an Officer (rank 20):

  ${system.post({
    url: `${url}/v1/ranker?placeid=${demoPlace}`,
    secret,
    body: { rankerName: 'You', rankerId: 0, rankeeName: 'Newcomer', rankeeId: demoMember, newRankId: 20 },
  })}

To see the result: rankd rank show ${demoMember}, and rankd history list
`;
}
