import type { Command } from 'commander';
import { RankdError } from '../../base/errors.ts';
import { localUrl } from '../../base/net.ts';
import { crypto } from '../../base/node-modules.ts';
import { askIdentity, askStatus, exchange } from '../../control/ask.ts';
import { proofHeader, proofOf, questionHeader } from '../../core/proof.ts';
import { healthDocument } from '../../usecases/documents/daemon.ts';
import type { Cli } from '../cli.ts';
import { examples } from '../output/help.ts';
import { whileWaiting } from '../output/terminal.ts';

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

/** An answer counts only if it comes with the proof that this daemon gave it: another program may be at the address, or another daemon. */
async function health(cli: Cli, isReadyAsked: boolean): Promise<void> {
  await requireDaemon(cli);
  const showingTheWait = <T>(work: () => Promise<T>) => whileWaiting(cli.line, 'waiting for the daemon', work);
  const { origin, identity, isSimulated } = await showingTheWait(() => daemonOf(cli));
  const url = origin + (isReadyAsked ? '/readyz' : '/healthz');
  const question = crypto().randomBytes(16).toString('base64url');
  const request = { ...optionsFor(url), headers: { [questionHeader]: question } };
  const answer = await showingTheWait(() => exchange(request, timeoutMs)).catch((cause) => {
    throw silent(`at ${url}`, cause);
  });
  const proof = proofOf(identity, { question, authorization: undefined });
  if (answer.headers[proofHeader] !== proof) throw stranger(url);
  if (answer.status !== 200) throw unwell(url, answer.body);
  if (isSimulated) cli.tellSimulated();
  const misfits = (Object(parsed(answer.body)) as { misfits?: string[] }).misfits ?? [];
  cli.print(healthDocument(url, misfits), `ok: ${url} answers`);
  for (const misfit of misfits) cli.say(`warning: ${misfit}`);
}

async function requireDaemon({ dataDir, operations }: Cli): Promise<void> {
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
    hint: maybeStarting,
  });
}

/** Where the daemon listens, flags and port 0 included, and what its proofs are made with. */
async function daemonOf(cli: Cli): Promise<{ origin: string; identity: string; isSimulated: boolean }> {
  const [status, identity] = await Promise.all([askStatus(cli.dataDir), askIdentity(cli.dataDir)]);
  if (status === undefined || identity === undefined) throw silent('its commands');
  return { origin: status.url, identity, isSimulated: status.simulated };
}

function silent(what: string, cause?: unknown): RankdError {
  return new RankdError('daemon_unavailable', `rankd runs, but does not answer ${what}.`, {
    cause,
    hint: maybeStarting,
  });
}

/** The advice for a daemon that holds its lock and does not respond. */
export const maybeStarting = 'look at its log; it may be starting or stopping. If it stays so: rankd doctor';

function stranger(url: string): RankdError {
  return new RankdError(
    'daemon_unavailable',
    `Another program answers at ${url}, not the daemon of this data directory.`,
    {
      hint: 'stop the other program, or give the daemon a port of its own with server.port, then restart it',
    },
  );
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
