import type { Command } from 'commander';
import { RankdError } from '../../base/errors.ts';
import type { ChangedSetting } from '../../config/compare.ts';
import { askReload } from '../../control/ask.ts';
import type { ReloadOutcome } from '../../control/control.ts';
import { nodeReloadsDocument, reloadDocument } from '../../usecases/documents/daemon.ts';
import { askNodes, noDaemon } from '../../usecases/upkeep/ask-nodes.ts';
import type { Cli } from '../cli.ts';
import { notItsFile, strangerTo } from '../daemon-here.ts';
import { ExitCode, exitCodes } from '../output/errors.ts';
import { examples, settingText } from '../output/help.ts';
import { type Shown, table } from '../output/table.ts';
import { whileWaiting } from '../output/terminal.ts';
import { notAnswering, requireAnswer } from './health.ts';

/** How long a reload may take: longer than the daemon waits for a platform that does not answer. */
const reloadTimeoutMs = 60_000;

export function reloadCommand(program: Command, cli: Cli): void {
  program
    .command('reload')
    .description(
      'make the running daemon read its configuration again, all or nothing: the file and the flags it was started with; of daemons that share a database, each does',
    )
    .option('--node <name>', 'only the daemon that `rankd status` calls so, of those that share a database')
    .option(
      '--relearn',
      'settings that name roles mean the roles that their entries name now, instead of those that they named when rankd read them first',
    )
    .addHelpText(
      'after',
      examples(
        'rankd config check && rankd reload',
        'rankd reload --json',
        'rankd reload --node east-1',
        'rankd reload --relearn',
        'sudo -u rankd rankd reload --data-dir /var/lib/rankd',
      ),
    )
    .action((options: ReloadOptions) => reload(cli, options));
}

interface ReloadOptions {
  node?: string;
  relearn?: boolean;
}

async function reload(cli: Cli, { node, relearn = false }: ReloadOptions): Promise<void> {
  if (await cli.isOnServer()) return reloadNodes(cli, { name: node, relearns: relearn });
  if (node !== undefined) {
    throw new RankdError('usage', '--node is for daemons that share a database of PostgreSQL; here is one daemon.', {
      hint: 'leave out --node',
    });
  }
  const outcome = await whileWaiting(cli.line, 'the daemon reads its configuration', () => ask(cli, relearn));
  if (outcome.state === 'refused') {
    const text = cli.options.json ? outcome.message : outcome.withExcerpts;
    throw new RankdError(outcome.code, `${text}\nThe daemon keeps the configuration that it had.`, {
      hint: outcome.hint?.replace('run the command again', 'run `rankd reload` again'),
    });
  }
  const stranger = strangerTo(cli, outcome.file);
  const warnings = [...(stranger === undefined ? [] : [notItsFile(outcome.file, stranger)]), ...outcome.warnings];
  cli.print(reloadDocument(outcome, warnings), ...textOf(outcome, stranger === undefined ? 'ok: ' : ''));
  for (const warning of warnings) cli.say(`warning: ${warning}`);
  if (outcome.needRestart.length > 0) cli.say('Restart the daemon for what needs it.');
}

/** Each node reads its own file. The exit code is that of the worst outcome. */
async function reloadNodes(
  cli: Cli,
  { name, relearns }: { name: string | undefined; relearns: boolean },
): Promise<void> {
  if (!(await cli.operations.exists())) throw noDaemon();
  const command = { does: 'reload', by: cli.by, relearns } as const;
  const answers = await whileWaiting(cli.line, 'the daemons read their configurations', () =>
    cli.withStore(async ({ store: { nodes }, clock }) => {
      return nodes === undefined ? [] : askNodes({ nodes, clock }, { command, name, timeoutMs: reloadTimeoutMs });
    }),
  );
  const reloads = answers.map((answer) => ({ ...answer, outcome: answer.outcome as ReloadOutcome | undefined }));
  cli.print(nodeReloadsDocument(reloads), ...reloads.flatMap(textOfNode));
  for (const { name, outcome } of reloads) {
    if (outcome?.state !== 'applied') continue;
    for (const warning of outcome.warnings) cli.say(`warning: ${name}: ${warning}`);
    if (outcome.needRestart.length > 0) cli.say(`Restart ${name} for what needs it.`);
  }
  const worst = Math.max(...reloads.map(({ outcome }) => exitCodeOf(outcome)));
  if (worst > 0) throw new ExitCode(worst);
}

function textOfNode({ name, outcome }: { name: string; outcome: ReloadOutcome | undefined }): Array<string | Shown> {
  if (outcome === undefined) return [`${name}: no answer; its log says why`];
  if (outcome.state === 'applied') return textOf(outcome, `${name}: `);
  const hint = outcome.hint?.replace('run the command again', 'run `rankd reload` again');
  return [
    `${name}: REFUSED, it keeps the configuration that it had: ${outcome.message}`,
    ...(hint ? [`try: ${hint}`] : []),
  ];
}

function exitCodeOf(outcome: ReloadOutcome | undefined): number {
  if (outcome === undefined) return exitCodes.daemon_unavailable;
  return outcome.state === 'applied' ? 0 : exitCodes[outcome.code];
}

async function ask(cli: Cli, relearns: boolean): Promise<ReloadOutcome> {
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
  const from = file ?? 'the defaults, as there is no configuration file';
  const rows = [...rowsOf(applied, 'at once'), ...rowsOf(needRestart, 'needs a restart')];
  if (rows.length === 0) return [`${verdict}nothing has changed in ${from}`];
  return [`${verdict}taken up from ${from}\n`, table(['setting', 'before', 'now', 'holds'], rows)];
}

function rowsOf(changes: ChangedSetting[], holds: string): string[][] {
  return changes.map((change) => [change.name, ...valuesOf(change), holds]);
}

interface Declared {
  name: string;
}

function valuesOf({ name, before, now }: ChangedSetting): [before: string, now: string] {
  if (name !== 'keys') return [settingText(before), settingText(now)];
  const [earlier, later] = [before, now] as [Declared[], Declared[]];
  return [String(earlier.length), `${later.length} (${keyChanges(earlier, later)})`];
}

/** How the declared keys differ from those before, by name: their hashes would say nothing to a person. */
function keyChanges(before: readonly Declared[], now: readonly Declared[]): string {
  const [then, today] = [byName(before), byName(now)];
  const groups = {
    added: now.filter(({ name }) => !then.has(name)),
    changed: now.filter(({ name }) => then.has(name) && then.get(name) !== today.get(name)),
    removed: before.filter(({ name }) => !today.has(name)),
  };
  const told = Object.entries(groups).flatMap(([what, keys]) => (keys.length > 0 ? `${what} ${listed(keys)}` : []));
  return told.join('; ') || 'in another order';
}

function byName(keys: readonly Declared[]): Map<string, string> {
  return new Map(keys.map((key) => [key.name, JSON.stringify(key)]));
}

const maxNamed = 10;

function listed(keys: readonly Declared[]): string {
  const names = keys.slice(0, maxNamed).map(({ name }) => name);
  return [...names, ...(keys.length > maxNamed ? [`${keys.length - maxNamed} more`] : [])].join(', ');
}
