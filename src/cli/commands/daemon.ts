import { RankdError } from '../../base/errors.ts';
import { hostOf, localUrl } from '../../base/net.ts';
import { crypto } from '../../base/node-modules.ts';
import { counted } from '../../base/text.ts';
import type { ChangedSetting } from '../../config/compare.ts';
import {
  askDashboardLink,
  askDashboardLogout,
  askIdentity,
  askReload,
  askStatus,
  exchange,
} from '../../control/ask.ts';
import { type LinkOutcome, maxHours, type ReloadOutcome, usualHours } from '../../control/control.ts';
import { proofHeader, proofOf, questionHeader } from '../../core/proof.ts';
import type { NodeCommand } from '../../ports/index.ts';
import {
  healthDocument,
  linkDocument,
  nodeReloadsDocument,
  reloadDocument,
} from '../../usecases/upkeep/daemon-document.ts';
import { makeLoginLink } from '../../usecases/upkeep/login-links.ts';
import { askNodes, type NodeAnswer, noDaemon } from '../../usecases/upkeep/nodes.ts';
import type { Cli } from '../cli.ts';
import { command, flag, oneOf, option } from '../command.ts';
import { otherConfigHere, otherFileText } from '../daemon-here.ts';
import { wholeNumber } from '../input/arguments.ts';
import { ExitCode, exitCodes } from '../output/errors.ts';
import { settingText } from '../output/help.ts';
import { type Shown, table } from '../output/table.ts';
import { whileWaiting } from '../output/terminal.ts';

const healthTimeoutMs = 4_000;

export const healthCommand = command({
  name: 'health',
  about: 'check over HTTP that the daemon of this data directory is healthy; exits with 0 if it is, otherwise with 69',
  options: {
    ready: flag('--ready', 'also check that its database, Roblox and the Roblox key work, and that it is not stopping'),
  },
  examples: ['rankd health', 'rankd health --ready', 'HEALTHCHECK CMD ["rankd", "health"]   # in a Dockerfile'],
  run: (cli, { ready }) => health(cli, ready),
});

/**
 * Requires this daemon's proof in the response, because a different program or daemon may be listening at the address.
 */
async function health(cli: Cli, checksReadiness: boolean): Promise<void> {
  await requireDaemon(cli);
  const showingTheWait = <T>(work: () => Promise<T>) => whileWaiting(cli.line, 'waiting for the daemon', work);
  const { origin, identity, isSimulated } = await showingTheWait(() => daemonOf(cli));
  const url = origin + (checksReadiness ? '/readyz' : '/healthz');
  const question = crypto().randomBytes(16).toString('base64url');
  const request = { ...optionsFor(url), headers: { [questionHeader]: question } };
  const answer = await showingTheWait(() => exchange(request, healthTimeoutMs)).catch((cause) => {
    throw notResponding(`at ${url}`, cause);
  });
  const proof = proofOf(identity, { question, authorization: undefined });
  if (answer.headers[proofHeader] !== proof) throw stranger(url);
  if (answer.status !== 200) throw notReady(url, answer.body);
  if (isSimulated) cli.saySimulated();
  const misfits = (Object(parsed(answer.body)) as { misfits?: string[] }).misfits ?? [];
  cli.print(healthDocument(url, misfits), `ok: ${url} answers`);
  for (const misfit of misfits) cli.say(`warning: ${misfit}`);
}

async function requireDaemon({ dataDir, operations }: Cli): Promise<void> {
  if (await operations.isDaemonRunning()) return;
  throw new RankdError('daemon_unavailable', `No rankd daemon is running on the data directory ${dataDir}.`, {
    hint: 'start it with `rankd serve`, or name a different directory with --data-dir',
  });
}

/** Throws early if no daemon responds, because the request itself can take a long time. */
async function requireAnswer(cli: Cli): Promise<void> {
  await requireDaemon(cli);
  if ((await askStatus(cli.dataDir)) === undefined) throw notAnswering();
}

function notAnswering(): RankdError {
  return new RankdError('daemon_unavailable', 'The daemon of this data directory does not respond.', {
    hint: maybeStarting,
  });
}

/** Asks the daemon for its address: a flag may override the configured one, and for port 0, the system chooses it. */
async function daemonOf(cli: Cli): Promise<{ origin: string; identity: string; isSimulated: boolean }> {
  const [status, identity] = await Promise.all([askStatus(cli.dataDir), askIdentity(cli.dataDir)]);
  if (status === undefined || identity === undefined) throw notResponding('to commands');
  return { origin: status.url, identity, isSimulated: status.simulated };
}

function notResponding(what: string, cause?: unknown): RankdError {
  return new RankdError('daemon_unavailable', `rankd is running, but does not respond ${what}.`, {
    cause,
    hint: maybeStarting,
  });
}

export const maybeStarting = 'check its log; it may be starting or stopping. If this lasts: rankd doctor';

function stranger(url: string): RankdError {
  return new RankdError(
    'daemon_unavailable',
    `Another program answers at ${url}, not the daemon of this data directory.`,
    {
      hint: 'stop the other program, or give the daemon a different port with server.port, then restart it',
    },
  );
}

function optionsFor(url: string) {
  const local = new URL(localUrl(url));
  return { host: hostOf(local), port: local.port, path: local.pathname };
}

function notReady(url: string, body: string): RankdError {
  const { message = 'it gave no reason' } = Object(parsed(body)) as { message?: string };
  return new RankdError('daemon_unavailable', `rankd is not ready: ${message}`, {
    hint: `rankd doctor; the daemon's log and ${url} have the details`,
  });
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** Longer than the daemon's timeout for a platform that does not respond. */
const reloadTimeoutMs = 60_000;
const logoutTimeoutMs = 10_000;

export const reloadCommand = command({
  name: 'reload',
  about:
    'make the running daemon, and all daemons that share its database, reload their configuration files; a file with a mistake changes nothing, and flags given at the start stay in force',
  options: {
    node: option(
      '--node <name>',
      'of the daemons that share a database, only the one with this name in `rankd status`',
    ),
    relearn: flag(
      '--relearn',
      'look up the role names in the settings again: a name then means the role that has it now, not the one that had it before',
    ),
  },
  examples: [
    'rankd config check && rankd reload',
    'rankd reload --json',
    'rankd reload --node east-1',
    'rankd reload --relearn',
    'sudo -u rankd rankd reload --data-dir /var/lib/rankd',
  ],
  run: reload,
});

async function reload(cli: Cli, { node, relearn }: { node?: string; relearn: boolean }): Promise<void> {
  if (await cli.isOnServer()) return reloadNodes(cli, { name: node, relearns: relearn });
  if (node !== undefined) {
    throw new RankdError(
      'usage',
      '--node is for daemons that share a PostgreSQL database; this data directory has only one daemon.',
      {
        hint: 'leave out --node',
      },
    );
  }
  const outcome = await whileWaiting(cli.line, 'the daemon is reading its configuration', () =>
    askForReload(cli, relearn),
  );
  if (outcome.state === 'refused') {
    const text = cli.options.json ? outcome.message : outcome.withExcerpts;
    throw new RankdError(outcome.code, `${text}\nThe daemon continues with its old configuration.`, {
      hint: outcome.hint,
    });
  }
  const stranger = otherConfigHere(cli, outcome.file);
  const warnings = [...(stranger === undefined ? [] : [otherFileText(outcome.file, stranger)]), ...outcome.warnings];
  cli.print(reloadDocument(outcome, warnings), ...textOf(outcome, stranger === undefined ? 'ok: ' : ''));
  for (const warning of warnings) cli.say(`warning: ${warning}`);
  if (outcome.needRestart.length > 0) cli.say(`Restart the daemon to apply ${restartWords(outcome)}.`);
}

/** Makes each node, or the named one, reload its own file. The worst outcome determines the exit code. */
async function reloadNodes(
  cli: Cli,
  { name, relearns }: { name: string | undefined; relearns: boolean },
): Promise<void> {
  const command = { does: relearns ? 'relearn' : 'reload', by: cli.by } as const;
  const asking = { command, name, timeoutMs: reloadTimeoutMs };
  const answers = await askAllNodes(cli, 'the daemons are reading their configurations', asking);
  const reloads = answers.map((answer) => ({ ...answer, outcome: answer.outcome as ReloadOutcome | undefined }));
  cli.print(nodeReloadsDocument(reloads), ...reloads.flatMap(textOfNode));
  for (const { name, outcome } of reloads) {
    if (outcome?.state !== 'applied') continue;
    for (const warning of outcome.warnings) cli.say(`warning: ${name}: ${warning}`);
    if (outcome.needRestart.length > 0) cli.say(`Restart ${name} to apply ${restartWords(outcome)}.`);
  }
  const worst = Math.max(...reloads.map(({ outcome }) => exitCodeOf(outcome)));
  if (worst > 0) throw new ExitCode(worst);
}

function restartWords({ applied }: { applied: ChangedSetting[] }): string {
  return applied.length > 0 ? 'the other changes' : 'the changes';
}

/**
 * Sends a command to all daemons that share the database, or to the one with this name. `what` describes the wait on
 * the progress line.
 */
async function askAllNodes(
  cli: Cli,
  what: string,
  asking: { command: NodeCommand; name?: string | undefined; timeoutMs: number },
): Promise<NodeAnswer[]> {
  if (!(await cli.operations.exists())) throw noDaemon();
  return whileWaiting(cli.line, what, () =>
    cli.withStore(async ({ store: { nodes }, clock }) =>
      nodes === undefined ? [] : askNodes({ nodes, clock }, asking),
    ),
  );
}

function textOfNode({ name, outcome }: { name: string; outcome: ReloadOutcome | undefined }): Array<string | Shown> {
  if (outcome === undefined) return [`${name}: no response; check its log`];
  if (outcome.state === 'applied') return textOf(outcome, `${name}: `);
  return [
    `${name}: REFUSED, it continues with its old configuration: ${outcome.message}`,
    ...(outcome.hint ? [`try: ${outcome.hint}`] : []),
  ];
}

function exitCodeOf(outcome: ReloadOutcome | undefined): number {
  if (outcome === undefined) return exitCodes.daemon_unavailable;
  return outcome.state === 'applied' ? 0 : exitCodes[outcome.code];
}

async function askForReload(cli: Cli, relearns: boolean): Promise<ReloadOutcome> {
  const { dataDir, by } = cli;
  await requireAnswer(cli);
  const outcome = await askReload({ dataDir, by, relearns }, reloadTimeoutMs);
  if (outcome === undefined) throw notAnswering();
  return outcome;
}

function textOf(
  { file, applied, needRestart }: Extract<ReloadOutcome, { state: 'applied' }>,
  verdict: string,
): Array<string | Shown> {
  const rows = [...rowsOf(applied, 'at once'), ...rowsOf(needRestart, 'after a restart')];
  if (rows.length === 0) return [`${verdict}nothing has changed${file === null ? `: ${noFile}` : ` in ${file}`}`];
  return [
    `${verdict}loaded from ${file ?? 'environment variables and defaults'}\n`,
    table(['setting', 'before', 'now', 'takes effect'], rows),
  ];
}

const noFile = 'there is no configuration file, and a changed environment variable needs a restart';

function rowsOf(changes: ChangedSetting[], takesEffect: string): string[][] {
  return changes.map((change) => [change.name, ...valuesOf(change), takesEffect]);
}

interface Declared {
  name: string;
}

function valuesOf({ name, before, now }: ChangedSetting): [before: string, now: string] {
  if (name !== 'keys') return [settingText(before), settingText(now)];
  const [earlier, later] = [before, now] as [Declared[], Declared[]];
  return [String(earlier.length), `${later.length} (${keyChanges(earlier, later)})`];
}

/** Lists added, changed and removed keys by name, because hashes mean nothing to the operator. */
function keyChanges(before: readonly Declared[], now: readonly Declared[]): string {
  const [then, today] = [byName(before), byName(now)];
  const groups = {
    added: now.filter(({ name }) => !then.has(name)),
    changed: now.filter(({ name }) => then.has(name) && then.get(name) !== today.get(name)),
    removed: before.filter(({ name }) => !today.has(name)),
  };
  const parts = Object.entries(groups).flatMap(([what, keys]) => (keys.length > 0 ? `${what} ${listed(keys)}` : []));
  return parts.join('; ') || 'in a different order';
}

function byName(keys: readonly Declared[]): Map<string, string> {
  return new Map(keys.map((key) => [key.name, JSON.stringify(key)]));
}

const maxNamed = 10;

function listed(keys: readonly Declared[]): string {
  const names = keys.slice(0, maxNamed).map(({ name }) => name);
  return [...names, ...(keys.length > maxNamed ? [`${keys.length - maxNamed} more`] : [])].join(', ');
}

export const dashboardCommand = command({
  name: 'dashboard',
  about: 'print a link to the dashboard, a web page that shows who changed what and can undo it',
  args: [oneOf('[logout]', 'log everyone out of the page, and invalidate every link', ['logout'])],
  options: {
    open: flag('--open', "open the link in this machine's browser"),
    view: flag('--view', 'for staff: the session shows everything and can change nothing'),
    hours: option('--hours <n>', 'how long the session lasts', wholeNumber(1, maxHours), usualHours),
  },
  examples: ['rankd dashboard', 'rankd dashboard --open', 'rankd dashboard --view --hours 4', 'rankd dashboard logout'],
  run: (cli, logout, options) => (logout === undefined ? dashboard(cli, options) : endSessions(cli, options)),
});

async function dashboard(
  cli: Cli,
  { open: isOpened, view, hours }: { open: boolean; view: boolean; hours: number },
): Promise<void> {
  const isElsewhere = (await cli.isOnServer()) && !(await cli.operations.isDaemonRunning());
  const outcome = await whileWaiting(cli.line, 'waiting for the daemon', () =>
    isElsewhere
      ? storeSharedLink(cli, { isViewOnly: view, lifeMs: hours * 3_600_000 })
      : ask(cli, (asking) => askDashboardLink({ ...asking, isViewOnly: view, hours })),
  );
  if (outcome.state === 'refused') throw new RankdError(outcome.code, outcome.message, { hint: outcome.hint });
  if (isOpened) await openInBrowser(cli, outcome.url);
  cli.print(linkDocument(outcome), outcome.url);
  const elsewhere = outcome.tunnel === null ? '' : ` From another machine: ssh -L ${outcome.tunnel} THIS-MACHINE`;
  const only = view ? ' Its session can change nothing.' : '';
  cli.say(`The link works once, within five minutes.${only}${elsewhere}`);
}

/** Stores a login link in the shared database, where a daemon on another machine finds it. */
async function storeSharedLink(
  cli: Cli,
  kind: { isViewOnly: boolean; lifeMs: number },
): Promise<Extract<LinkOutcome, { state: 'made' }>> {
  if (!(await cli.operations.exists())) throw noDaemon();
  return cli.withWrites(async (ports) => {
    const nodes = ((await ports.store.nodes?.listNodes()) ?? []).filter(({ state }) => state === 'serving');
    if (nodes.length === 0) throw noDaemon();
    const page = nodes.map(({ status }) => status.page).find((url) => typeof url === 'string');
    if (page === undefined) throw noLastingPage(nodes.map(({ name }) => name));
    const { secret, expiresAt } = await makeLoginLink(ports, { ...kind, by: cli.by });
    return { state: 'made', url: `${page}/login#${secret}`, expiresAt, tunnel: null };
  });
}

function noLastingPage(daemons: string[]): RankdError {
  return new RankdError(
    'daemon_unavailable',
    `None of the daemons on this database serves its page all the time: ${daemons.join(', ')}.`,
    {
      hint: "run `rankd dashboard` on the daemon's machine, or set dashboard.path there and restart it",
    },
  );
}

async function endSessions(cli: Cli, { open, view }: { open: boolean; view: boolean }): Promise<void> {
  const stray = [...(open ? ['--open'] : []), ...(view ? ['--view'] : [])];
  if (stray.length > 0)
    throw new RankdError(
      'usage',
      `${stray.join(' and ')} can't be combined with logout, which ends every session of the page.`,
      {
        hint: 'rankd dashboard logout',
      },
    );
  const { sessions } = (await cli.isOnServer()) ? await endSessionsOfNodes(cli) : await ask(cli, askDashboardLogout);
  cli.print({ sessions }, `${counted(sessions, 'session')} ended; earlier links no longer work.`);
}

/** Ends the sessions of all daemons that share the database. Throws `daemon_unavailable` if one does not respond. */
async function endSessionsOfNodes(cli: Cli): Promise<{ sessions: number }> {
  const command = { does: 'logout', by: cli.by } as const;
  const answers = await askAllNodes(cli, 'the daemons are ending the sessions', {
    command,
    timeoutMs: logoutTimeoutMs,
  });
  const silentNodes = answers.filter(({ outcome }) => outcome === undefined).map(({ name }) => name);
  if (silentNodes.length > 0) {
    throw new RankdError(
      'daemon_unavailable',
      `No response from ${silentNodes.join(', ')}; sessions there may continue.`,
      {
        hint: 'rankd status shows whether they are running; restarting a daemon ends all its sessions',
      },
    );
  }
  const outcomes = answers.map(({ outcome }) => outcome as { sessions: number });
  return { sessions: outcomes.reduce((sum, { sessions }) => sum + sessions, 0) };
}

async function ask<Answer>(
  cli: Cli,
  of: (asking: { dataDir: string; by: string }) => Promise<Answer | undefined>,
): Promise<Answer> {
  const { dataDir, by } = cli;
  await requireAnswer(cli);
  const answer = await of({ dataDir, by });
  if (answer === undefined) throw notAnswering();
  return answer;
}

/**
 * Opens a link to the page in the user's browser. Prints a message if no browser can be opened, and throws for any
 * other link.
 */
async function openInBrowser(cli: Cli, url: string): Promise<void> {
  const { config } = await cli.loadConfig();
  const { publicUrl = '' } = config.server;
  const origins = [config.dashboard.url, publicUrl.startsWith('https:') ? new URL(publicUrl).origin : undefined];
  if (!isPageLink(url, origins)) {
    const message =
      'The daemon returned a link that is neither on this machine nor below dashboard.url or server.public_url, so rankd does not open it.';
    throw new RankdError('daemon_unavailable', message, { hint: 'rankd doctor' });
  }
  const { spawn } = await import('node:child_process');
  const [program, ...args] = cli.io.system.browser;
  const browser = spawn(program, [...args, url], { detached: true, stdio: 'ignore', env: cli.io.env });
  await new Promise<void>((resolve) => {
    browser.once('spawn', resolve).once('error', () => {
      cli.say(`No browser could be opened (${program}); open the link yourself.`);
      resolve();
    });
  });
  browser.unref();
}

/**
 * Accepts only web addresses on this machine or with one of the origins, because the system's opener would run any file
 * that a compromised daemon names.
 */
function isPageLink(link: string, origins: Array<string | undefined>): boolean {
  const url = URL.parse(link);
  if (url === null || url.href !== link) return false;
  const isLoopback = url.protocol === 'http:' && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  return isLoopback || origins.includes(url.origin);
}
