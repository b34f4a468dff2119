import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import { counted } from '../../base/text.ts';
import { askStatus } from '../../control/ask.ts';
import { waitingText } from '../../core/webhooks/webhook.ts';
import type { Ports } from '../../ports/index.ts';
import { type DaemonStatus, type FoundDaemon, statusDocument } from '../../usecases/documents/status.ts';
import { countChanges } from '../../usecases/history/history.ts';
import type { Cli } from '../cli.ts';
import { ExitCode } from '../output/errors.ts';
import { examples } from '../output/help.ts';
import type { Shown } from '../output/screen.ts';
import { facts, table } from '../output/table.ts';
import { whileWaiting } from '../output/waiting.ts';
import { WatchScreen } from '../output/watch-screen.ts';
import { ago, when } from '../output/when.ts';

const timeoutMs = 2_000;
const watchEveryMs = 2_000;

export function statusCommand(program: Command, cli: Cli): void {
  program
    .command('status')
    .description('how the daemon of this data directory is doing; exit code 69 if none runs or it does not answer')
    .option('--watch', 'show it again every two seconds, until interrupted')
    .addHelpText('after', examples('rankd status', 'rankd status --watch', 'rankd status --json'))
    .action(({ watch = false }: { watch?: boolean }) => (watch ? watchStatus(cli) : status(cli)));
}

async function status(cli: Cli): Promise<void> {
  const found = await whileWaiting(cli.line, 'waiting for the daemon', () => look(cli));
  cli.print({ status: statusDocument(found) }, ...partsOf(found));
  if (found.state === 'running' || found.state === 'stopping') return;
  cli.say(hints[found.state]);
  throw new ExitCode(69);
}

async function watchStatus(cli: Cli): Promise<void> {
  if (cli.options.json) {
    throw new RankdError('usage', '--json is one document; it cannot be watched.', {
      hint: 'leave out --watch and run it as often as you like',
    });
  }
  const stopping = new AbortController();
  void Promise.race([cli.io.stopSignal, cli.io.readerGone]).then(() => stopping.abort());
  using screen = cli.io.stdoutIsTerminal ? new WatchScreen(cli.io) : undefined;
  while (!stopping.signal.aborted) {
    const text = cli.shown(partsOf(await look(cli)));
    if (screen === undefined) cli.io.stdout(`${text}\n\n`);
    else screen.show(text);
    await systemClock.sleep(watchEveryMs, stopping.signal).catch(() => undefined);
  }
  throw new ExitCode(130);
}

const hints = {
  'not running': 'try: rankd serve',
  'not answering': 'try: look at the log of the daemon; it may be starting or stopping',
};

async function look(cli: Cli): Promise<FoundDaemon> {
  const daemon = await askStatus(cli.dataDir, timeoutMs);
  const counted = (ports: Pick<Ports, 'store' | 'clock'>) => countChanges(ports, daemon?.changesRanksIn);
  const counts = (await cli.operations.exists()) ? await cli.withStore(counted) : undefined;
  if (daemon === undefined) {
    return { state: (await cli.operations.isDaemonRunning()) ? 'not answering' : 'not running', counts };
  }
  return { state: daemon.isStopping ? 'stopping' : 'running', daemon, counts };
}

function partsOf(found: FoundDaemon): Shown[] {
  const { openChanges = null, today } = found.counts ?? {};
  const counted = Object.entries(today ?? {}).flatMap(([state, count]) => (count === 0 ? [] : [`${count} ${state}`]));
  const problems = 'daemon' in found ? found.daemon.problems : [];
  const summary = facts({
    state: found.state,
    ...('daemon' in found && daemonFacts(found.daemon)),
    'open changes': openChanges,
    'changes today': today === undefined ? null : counted.join(', ') || 'none',
    'last problems': problems.length > 0 || !('daemon' in found) ? null : 'none',
  });
  const surprises = 'daemon' in found ? found.daemon.platformTrust.surprises : [];
  return [
    summary,
    apart(
      table(
        ['at', 'problem'],
        problems.map(({ at, message }) => [ago(Date.parse(at)), message]),
        { wrapsLast: true },
      ),
    ),
    apart(
      table(
        ['first seen', 'last seen', 'times', 'Roblox surprised rankd by'],
        surprises.map(({ operation, what, count, firstAt, lastAt }) => [
          when(Date.parse(firstAt)),
          ago(Date.parse(lastAt)),
          String(count),
          `${operation}: ${what}`,
        ]),
        { wrapsLast: true },
      ),
    ),
  ];
}

/** With an empty line above, if there is anything. */
function apart(shown: Shown): Shown {
  return (screen) => shown(screen).replace(/^(?=.)/, '\n');
}

/** Null if there is nothing to tell; a daemon from before says nothing of it. */
function stuckText(stuck: DaemonStatus['stuckSuspensions'] = null): string | null {
  if (stuck === null || stuck.length === 0) return null;
  return `STUCK: ${stuck.join(', ')} can't be given the roles from before; rankd suspension list`;
}

/** Null if there is none; a daemon from before says nothing of them. */
function webhooksText(webhooks: DaemonStatus['webhooks'] = null): string | null {
  if (webhooks === null || webhooks.length === 0) return null;
  const troubled = webhooks.filter(({ state }) => state !== 'enabled');
  if (troubled.length === 0) return `${webhooks.length} in order`;
  const told = troubled.map(({ name, state, backlog, lastError }) => {
    return `${name} ${state === 'disabled' ? 'is DISABLED' : 'FAILS'}, ${waitingText(backlog)}: ${lastError ?? 'by an operator'}`;
  });
  return `${told.join('; ')}; rankd webhook list`;
}

function daemonFacts(daemon: DaemonStatus): Record<string, unknown> {
  const {
    pid,
    version,
    node,
    uptimeSeconds,
    url,
    metricsUrl,
    groupId,
    groupName,
    simulated,
    requestsInFlight,
    budget,
  } = daemon;
  return {
    pid,
    version: `${version} (Node.js ${node})`,
    uptime: age(uptimeSeconds),
    'listens on': url,
    'for games': daemon.publicUrl ?? null, // a daemon from before says nothing of it
    metrics: metricsUrl,
    group: simulated
      ? 'SIMULATED: nothing here touches Roblox'
      : groupName === null
        ? String(groupId)
        : `${groupName} (${groupId})`,
    configuration: daemon.configFile ?? 'none: the defaults',
    'needs a restart': daemon.needRestart.length === 0 ? null : `for ${daemon.needRestart.join(', ')}`,
    database: daemon.storeProblem === null ? null : `NOT USED ANY MORE: ${daemon.storeProblem}`,
    'Roblox key': credentialText(daemon.credential),
    'rank changes': trustText(daemon.platformTrust),
    workspace:
      daemon.workspaceActive === false ? 'SUSPENDED, so no game can do anything; rankd workspace resume' : null,
    'game keys': daemon.acceptsKeys === false ? 'NONE is accepted, so no game can do anything' : null,
    suspensions: stuckText(daemon.stuckSuspensions),
    webhooks: webhooksText(daemon.webhooks),
    page: pageText(daemon.dashboard),
    requests: `${requestsInFlight} in flight`,
    queue: `${daemon.callsWaiting} calls wait for Roblox`,
    'budget left':
      budget.map(({ operation, left, limit }) => `${operation} ${left}/${limit}`).join(', ') || 'not limited',
  };
}

/** Null while it does not listen; a daemon from before says nothing of it. */
function pageText(dashboard: DaemonStatus['dashboard'] = null): string | null {
  return dashboard && `${dashboard.url}, ${counted(dashboard.sessions, 'session')}`;
}

/** Null if there is nothing to tell. */
function trustText({ stop, believesAnswers }: DaemonStatus['platformTrust']): string | null {
  if (stop !== null) return `STOPPED: ${stop}`;
  return believesAnswers ? null : 'read before they are told: Roblox did not hold a change that it said it had made';
}

function credentialText({ isAccepted, problem, expiresAt }: DaemonStatus['credential']): string {
  if (!isAccepted) return `NOT ACCEPTED: ${problem}`;
  return expiresAt === null ? 'accepted' : `accepted, expires ${expiresAt.slice(0, 10)}`;
}

/** The two largest units of a duration, e.g. `3d 4h` or `12s`. */
function age(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const;
  const largest = parts.findIndex(([count]) => count > 0);
  if (largest === -1) return '0s';
  const shown = parts.slice(largest, largest + 2).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => `${count}${unit}`).join(' ');
}
