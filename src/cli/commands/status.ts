import { systemClock } from '../../base/clock.ts';
import { isRankdError, RankdError } from '../../base/errors.ts';
import { counted } from '../../base/text.ts';
import { askStatus } from '../../control/ask.ts';
import type { ErasureRequest } from '../../core/model.ts';
import { differencesOf, maxSkewMs, type SeenNode, skewedClocks, skewText } from '../../core/nodes.ts';
import { waitingText } from '../../core/webhooks/webhook.ts';
import { countChanges } from '../../usecases/history/history.ts';
import { unjudgedLateWrites } from '../../usecases/history/late-writes.ts';
import type { OldSecretInUse } from '../../usecases/keys/inspect-keys.ts';
import {
  type DaemonStatus,
  type FoundDaemon,
  statusDocument,
  storedFacts,
} from '../../usecases/upkeep/status-document.ts';
import type { Cli } from '../cli.ts';
import { command, flag } from '../command.ts';
import { ExitCode } from '../output/errors.ts';
import { ago, type Cell, facts, type Shown, table, timeText, when } from '../output/table.ts';
import { WatchScreen, whileWaiting } from '../output/terminal.ts';
import { maybeStarting } from './daemon.ts';

const watchEveryMs = 2_000;

export const statusCommand = command({
  name: 'status',
  about:
    'show the state of the daemon of this data directory, and of daemons that share its database; exits with 69 if none is serving requests',
  options: { watch: flag('--watch', 'refresh every two seconds, until Ctrl-C') },
  examples: ['rankd status', 'rankd status --watch', 'rankd status --json'],
  run: (cli, { watch }) => (watch ? watchStatus(cli) : status(cli)),
});

async function status(cli: Cli): Promise<void> {
  const found = await whileWaiting(cli.line, 'waiting for the daemon', () => findDaemon(cli));
  try {
    cli.printAsIs({ status: statusDocument(found) }, `${shown(cli, found)}\n`);
  } catch (cause) {
    if (found.daemon === undefined || !(cause instanceof TypeError)) throw cause;
    const message = 'The daemon returned a status that this command does not understand.';
    throw new RankdError('daemon_unavailable', message, {
      hint: 'restart the daemon, so that both have the same version',
      cause,
    });
  }
  if (found.state === 'running' || (found.state === 'stopping' && found.nodes === undefined)) return;
  cli.say(hints[found.state]);
  throw new ExitCode(69);
}

async function watchStatus(cli: Cli): Promise<void> {
  if (cli.options.json) {
    throw new RankdError('usage', "--json prints one document, so it can't be combined with --watch.", {
      hint: 'leave out --watch and run it as often as you like',
    });
  }
  const stopping = new AbortController();
  void Promise.race([cli.io.stopSignal, cli.io.readerGone]).then(() => stopping.abort());
  using screen = cli.io.stdoutIsTerminal && cli.io.screenSize ? new WatchScreen(cli.io) : undefined;
  while (!stopping.signal.aborted) {
    const text = shown(cli, await findDaemon(cli));
    if (screen === undefined) cli.io.stdout(`${text}\n\n`);
    else screen.show(text);
    await systemClock.sleep(watchEveryMs, stopping.signal).catch(() => undefined);
  }
  throw new ExitCode(130);
}

function shown(cli: Cli, found: FoundDaemon): string {
  return cli.asTyped(cli.shown(partsOf(found)));
}

const hints = {
  stopping: 'try: rankd serve, on any machine',
  'not running': 'try: rankd serve',
  'not responding': `try: ${maybeStarting}`,
};

async function findDaemon(cli: Cli): Promise<FoundDaemon> {
  const daemon = await askStatus(cli.dataDir);
  const stored = await readStoreFacts(cli, daemon).catch((error) => {
    if (daemon === undefined || !isRankdError(error, 'store_unavailable', 'conflict')) throw error;
    // a conflict means that the daemon runs an older version of rankd, so the database still has an older schema
    if (error.code === 'conflict') cli.warn(error);
    return {}; // the daemon itself reports that the store does not respond
  });
  const found = { counts: undefined, ...stored };
  const state = found.nodes && stateOf(found.nodes);
  if (daemon !== undefined) return { state: state ?? (daemon.isStopping ? 'stopping' : 'running'), daemon, ...found };
  if (state !== undefined) return { state, ...found };
  return { state: (await cli.operations.isDaemonRunning()) ? 'not responding' : 'not running', ...found };
}

async function readStoreFacts(cli: Cli, daemon: DaemonStatus | undefined): Promise<Partial<FoundDaemon>> {
  if (!(await cli.operations.exists())) return {};
  return cli.withStore(async ({ store, clock }) => {
    const nodes = await store.nodes?.listNodes();
    const group = daemon?.changesRanksIn ?? nodes?.find(({ state }) => state !== 'ended')?.status.group;
    const counts = await countChanges({ store, clock }, group);
    const kept = { counts, ...(await storedFacts({ store, clock })) };
    if (nodes === undefined) return kept;
    const serverAheadMs = Math.round(clock.now() - systemClock.now());
    return { ...kept, nodes, serverAheadMs, lateWrites: await unjudgedLateWrites({ store, clock }) };
  });
}

function stateOf(nodes: readonly SeenNode[]): FoundDaemon['state'] {
  const states = nodes.map(({ state }) => state);
  if (states.includes('serving')) return 'running';
  if (states.includes('draining')) return 'stopping';
  return states.includes('no lease') ? 'not responding' : 'not running';
}

function partsOf({ state, daemon, counts, nodes, ...kept }: FoundDaemon): Shown[] {
  const { lastBackupAt, oldSecrets = [], erasures = [], serverAheadMs, lateWrites } = kept;
  const { openChanges = null, today } = counts ?? {};
  const outcomes = Object.entries(today ?? {}).flatMap(([outcome, count]) =>
    count === 0 ? [] : [`${count} ${outcome}`],
  );
  const problems = daemon?.problems ?? [];
  const serving = nodes?.filter((node) => node.state === 'serving').length;
  const summary = facts({
    state: nodes === undefined ? state : `${state}, ${serving} of ${counted(nodes.length, 'node')} serving`,
    ...(daemon !== undefined && daemonFacts(daemon)),
    'open changes': openChanges,
    'changes today': today === undefined ? null : outcomes.join(', ') || 'none',
    'last backup': lastBackupAt === undefined ? null : lastBackupAt === null ? 'none by rankd' : ago(lastBackupAt),
    'old secrets': oldSecrets.length === 0 ? null : oldSecretsText(oldSecrets),
    'to be forgotten': erasures.length === 0 ? null : erasuresText(erasures),
    'last problems': problems.length > 0 || daemon === undefined ? null : 'none',
  });
  const misfits = daemon?.misfits ?? [];
  const surprises = daemon?.platformTrust.surprises ?? [];
  return [
    summary,
    ...nodeParts(nodes ?? []).map(withLeadingBlankLine),
    withLeadingBlankLine(
      table(
        ['does not fit the group', 'to correct it'],
        misfits.map(({ message, fix }) => [message, fix]),
        { wrapsLast: true },
      ),
    ),
    withLeadingBlankLine(
      table(
        ['game', 'its Rankd module is older than this daemon'],
        (daemon?.olderModules ?? []).map(({ placeId, version }) => [
          `place ${placeId}`,
          `${version}: write it again with rankd game write --force and the other options that you used before, insert it, and publish`,
        ]),
        { wrapsLast: true },
      ),
    ),
    withLeadingBlankLine(clocksTable(nodes ?? [], serverAheadMs)),
    withLeadingBlankLine(
      table(
        ['late write', 'check the roles'],
        (lateWrites ?? []).map(({ at, rankeeId }) => [ago(at), `of member ${rankeeId}: rankd rank show ${rankeeId}`]),
        { wrapsLast: true },
      ),
    ),
    withLeadingBlankLine(
      table(
        ['at', 'problem'],
        problems.map(({ at, message }) => [ago(Date.parse(at)), message]),
        { wrapsLast: true },
      ),
    ),
    withLeadingBlankLine(
      table(
        ['first seen', 'last seen', 'times', 'unexpected response'],
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

function nodeParts(nodes: readonly SeenNode[]): Shown[] {
  return [
    table(
      ['node', 'state', 'version', 'uptime', 'address', 'requests', 'waiting', 'budget left', 'Roblox key'],
      nodes.map(({ name, state, status }) => [
        name,
        state === 'serving' ? state : state.toUpperCase(),
        status.version,
        age(status.uptimeSeconds),
        status.url,
        String(status.requestsInFlight),
        String(status.callsWaiting),
        budgetText(status.budget),
        status.credentialProblem === null ? 'accepted' : `NOT ACCEPTED: ${status.credentialProblem}`,
      ]),
    ),
    table(
      ['differs between nodes', 'nodes with the same value'],
      differencesOf(nodes).map(({ setting, sides }) => [setting, sides.map((names) => names.join(', ')).join(' | ')]),
      { wrapsLast: true },
    ),
  ];
}

/** Lists the machines whose clock differs from the database server's, from which all recorded times come. */
function clocksTable(nodes: readonly SeenNode[], here = 0): Shown {
  const localOffset = Math.abs(here) < maxSkewMs ? [] : [{ name: 'this machine', serverAheadMs: here }];
  const all = [...localOffset, ...skewedClocks(nodes)];
  return table(
    ['clock of', 'is'],
    all.map(({ name, serverAheadMs }) => [name, skewText(serverAheadMs)]),
    { wrapsLast: true },
  );
}

function withLeadingBlankLine(shown: Shown): Shown {
  return (screen) => shown(screen).replace(/^(?=.)/, '\n');
}

/** Returns null if no suspension is stuck, or if the database does not respond. */
function stuckText(stuck: DaemonStatus['stuckSuspensions']): string | null {
  if (stuck === null || stuck.length === 0) return null;
  return `STUCK: ${stuck.join(', ')} can't get the previous roles back; rankd suspension list`;
}

/** Returns null if there is no webhook, or if the database does not respond. */
function webhooksText(webhooks: DaemonStatus['webhooks']): string | null {
  if (webhooks === null || webhooks.length === 0) return null;
  const unhealthy = webhooks.filter(({ state }) => state !== 'enabled');
  if (unhealthy.length === 0) return `${webhooks.length} in order`;
  const lines = unhealthy.map(({ name, state, why, backlog, lastError }) => {
    const standing = state === 'disabled' ? `DISABLED (${why})` : `FAILING (${lastError})`;
    return `${name} is ${standing}, ${waitingText(backlog)}`;
  });
  return `${lines.join('; ')}; rankd webhook list`;
}

function oldSecretsText(secrets: readonly OldSecretInUse[]): Cell {
  return (screen) =>
    secrets
      .map(
        ({ keyName, lastUsedAt, lastPlaceId, expiresAt }) =>
          `STILL USED: the old secret of ${keyName}, last ${lastPlaceId === undefined ? '' : `from place ${lastPlaceId} `}at ${timeText(lastUsedAt, screen)}; it expires at ${timeText(expiresAt, screen)}, so ${lastPlaceId === undefined ? 'give the new one to the program that uses it' : "restart that game's servers"}`,
      )
      .join('; ');
}

function erasuresText(waiting: readonly ErasureRequest[]): Cell {
  return (screen) =>
    `${counted(waiting.length, 'request')}, the oldest from ${timeText(waiting[0]?.receivedAt ?? 0, screen)}; rankd forget --requested`;
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
    'for games': daemon.publicUrl,
    metrics: metricsUrl,
    group: simulated
      ? 'SIMULATED: nothing here touches Roblox'
      : groupName === null
        ? String(groupId)
        : `${groupName} (${groupId})`,
    configuration: daemon.configFile ?? 'no file: environment variables and defaults',
    'needs a restart': daemon.needRestart.length === 0 ? null : `for ${daemon.needRestart.join(', ')}`,
    database: daemon.storeProblem === null ? null : `CAN'T BE USED: ${daemon.storeProblem}`,
    Roblox: unreachedText(daemon.unreached),
    'Roblox key': simulated ? null : credentialText(daemon.credential),
    'rank changes': trustText(daemon.platformTrust),
    workspace:
      daemon.workspaceActive === false ? 'SUSPENDED, so no game can do anything; rankd workspace resume' : null,
    'game keys': daemon.acceptsKeys === false ? 'NONE is accepted, so no game can do anything' : null,
    suspensions: stuckText(daemon.stuckSuspensions),
    webhooks: webhooksText(daemon.webhooks),
    Discord: discordText(daemon.discord),
    page: pageText(daemon.dashboard),
    requests: `${requestsInFlight} in flight`,
    queue: `${counted(daemon.callsWaiting, 'call')} waiting for Roblox`,
    'budget left': budgetText(budget),
  };
}

function unreachedText(unreached: DaemonStatus['unreached']): Cell | null {
  if (unreached.length === 0) return null;
  return (screen) => {
    const texts = unreached.map(({ host, since, message, hint }) => {
      const advice = hint === null ? '' : ` try: ${hint}`;
      return `${host} since ${timeText(Date.parse(since), screen)}: ${message}${advice}`;
    });
    return `NOT REACHED: ${texts.join('; ')}`;
  };
}

function budgetText(budget: DaemonStatus['budget']): string {
  return budget.map(({ operation, left, limit }) => `${operation} ${left}/${limit}`).join(', ') || 'not limited';
}

function discordText(discord: DaemonStatus['discord']): Cell | null {
  if (discord === null) return null;
  const { server, lastAt } = discord;
  if (lastAt === null) return `server ${server}, no request since the start`;
  return (screen) => `server ${server}, last request at ${timeText(Date.parse(lastAt), screen)}`;
}

function pageText(dashboard: DaemonStatus['dashboard']): string | null {
  return dashboard && `${dashboard.url}, ${counted(dashboard.sessions, 'session')}`;
}

function trustText({ stop, believesAnswers }: DaemonStatus['platformTrust']): string | null {
  if (stop !== null) return `STOPPED: ${stop}`;
  return believesAnswers
    ? null
    : 'each confirmed by a read first, because a later read contradicted a response from Roblox';
}

function credentialText({ isAccepted, problem, expiresAt }: DaemonStatus['credential']): string {
  if (!isAccepted) return `NOT ACCEPTED: ${problem}`;
  return expiresAt === null ? 'accepted' : `accepted, expires ${expiresAt.slice(0, 10)}`;
}

/** Formats a duration in its two largest units, e.g. `3d 4h`, or `12s`. */
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
