import type { Command } from 'commander';
import { RankdError } from '../../base/errors.ts';
import type { ChangedSetting } from '../../config/changed-settings.ts';
import { askReload, askStatus } from '../../control/ask.ts';
import type { ReloadOutcome } from '../../control/control.ts';
import { reloadDocument } from '../../usecases/documents/daemon.ts';
import type { Cli } from '../cli.ts';
import { examples } from '../output/help.ts';
import type { Shown } from '../output/screen.ts';
import { table } from '../output/table.ts';
import { whileWaiting } from '../output/waiting.ts';
import { settingText } from '../output/wording.ts';
import { notItsFile, strangerTo } from '../service/daemon-file.ts';
import { requireDaemon } from './health.ts';

/** How long a reload may take: longer than the daemon waits for a platform that does not answer. */
const reloadTimeoutMs = 60_000;

export function reloadCommand(program: Command, cli: Cli): void {
  program
    .command('reload')
    .description(
      'make the running daemon read its configuration again, all or nothing: the file and the flags it was started with',
    )
    .addHelpText(
      'after',
      examples(
        'rankd config check && rankd reload',
        'rankd reload --json',
        'sudo rankd reload --data-dir /var/lib/rankd',
      ),
    )
    .action(() => reload(cli));
}

async function reload(cli: Cli): Promise<void> {
  const outcome = await whileWaiting(cli.line, 'the daemon reads its configuration', () => ask(cli));
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

async function ask(cli: Cli): Promise<ReloadOutcome> {
  const { dataDir, by } = cli;
  await requireDaemon(cli);
  const isAnswering = (await askStatus(dataDir)) !== undefined;
  const outcome = isAnswering ? await askReload({ dataDir, by }, reloadTimeoutMs) : undefined;
  if (outcome !== undefined) return outcome;
  throw new RankdError('daemon_unavailable', 'The daemon of this data directory does not answer.', {
    hint: 'look at its log; it may be starting or stopping',
  });
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
