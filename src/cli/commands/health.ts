import { isIP } from 'node:net';
import type { Command } from 'commander';
import { RankdError } from '../../base/errors.ts';
import { localUrl } from '../../base/listen-url.ts';
import { askStatus, exchange } from '../../control/ask.ts';
import { controlPath, isControlMissing } from '../../control/control.ts';
import { healthDocument } from '../../usecases/documents/daemon.ts';
import type { Cli } from '../cli.ts';
import { examples } from '../output/help.ts';
import { whileWaiting } from '../output/waiting.ts';

const timeoutMs = 4_000;

export function healthCommand(program: Command, cli: Cli): void {
  program
    .command('health')
    .description('ask the daemon of this data directory over HTTP whether it is healthy: exit code 0 if so, else 69')
    .option('--ready', 'also check that its store, Roblox and the Roblox key work, and that it is not stopping')
    .addHelpText(
      'after',
      examples('rankd health', 'rankd health --ready', 'HEALTHCHECK CMD ["rankd", "health"]   # in a Dockerfile'),
    )
    .action(({ ready = false }: { ready?: boolean }) => health(cli, ready));
}

async function health(cli: Cli, isReadyAsked: boolean): Promise<void> {
  await requireDaemon(cli);
  const showingTheWait = <T>(work: () => Promise<T>) => whileWaiting(cli.line, 'waiting for the daemon', work);
  const { origin, isSimulated } = await showingTheWait(() => addressOf(cli));
  const url = origin + (isReadyAsked ? '/readyz' : '/healthz');
  const answer = await showingTheWait(() => exchange(optionsFor(url), timeoutMs)).catch((cause) => {
    throw silent(url, cause);
  });
  if (answer.status !== 200) throw unwell(url, answer.body);
  if (isSimulated) cli.tellSimulated();
  cli.print(healthDocument(url), `ok: ${url} answers`);
}

export async function requireDaemon({ dataDir, operations }: Cli): Promise<void> {
  if (await operations.isDaemonRunning()) return;
  throw new RankdError('daemon_unavailable', `No rankd daemon runs on the data directory ${dataDir}.`, {
    hint: 'start it with `rankd serve`, or name another directory with --data-dir',
  });
}

/** The same, and it answers: what is asked of it next can take a while. */
export async function requireAnswer(cli: Cli): Promise<void> {
  await requireDaemon(cli);
  if ((await askStatus(cli.dataDir)) === undefined) throw notAnswering();
}

export function notAnswering(): RankdError {
  return new RankdError('daemon_unavailable', 'The daemon of this data directory does not answer.', {
    hint: 'look at its log; it may be starting or stopping',
  });
}

/**
 * Where the daemon says that it listens: it knows of flags and port 0. If it could make no socket to say so, the configuration
 * decides. Throws if there is a socket and the daemon does not answer on it: another program may be at the configured address.
 */
async function addressOf(cli: Cli): Promise<{ origin: string; isSimulated: boolean }> {
  const status = await askStatus(cli.dataDir);
  if (status !== undefined) return { origin: status.url, isSimulated: status.simulated };
  if (!isControlMissing(cli.dataDir)) throw silent(controlPath(cli.dataDir));
  const { server, platform } = (await cli.loadConfig()).config;
  const { host, port } = server;
  const origin = `http://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  return { origin, isSimulated: platform.kind === 'simulated' };
}

function silent(where: string, cause?: unknown): RankdError {
  return new RankdError('daemon_unavailable', `rankd runs, but does not answer at ${where}.`, {
    cause,
    hint: 'look at its log; it may be starting or stopping',
  });
}

function optionsFor(url: string) {
  const { hostname, port, pathname } = new URL(localUrl(url));
  return { host: hostname.replace(/^\[|\]$/g, ''), port, path: pathname };
}

function unwell(url: string, body: string): RankdError {
  const { message = 'it does not say why' } = Object(parsed(body)) as { message?: string };
  return new RankdError('daemon_unavailable', `rankd is not ready: ${message}`, {
    hint: `rankd doctor; its log and ${url} say more`,
  });
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
