import { type Command, Option } from 'commander';
import { RankdError } from '../../../base/errors.ts';
import { suggest } from '../../../base/text.ts';
import { auditActions } from '../../../core/events.ts';
import type { AuditEvent } from '../../../core/model.ts';
import { eventDocument } from '../../../usecases/documents/audit.ts';
import { type AuditEventView, eventPages, followEvents, listEvents } from '../../../usecases/history/audit.ts';
import { withKeyId } from '../../../usecases/keys/find-key.ts';
import type { Cli } from '../../cli.ts';
import { moment, refuseEmptyPeriod, wholeNumber } from '../../input/arguments.ts';
import { examples, settingText } from '../../output/help.ts';
import { type Cell, labelOf, type Screen, table, timeText, when } from '../../output/table.ts';
import { whileStreaming } from '../../output/terminal.ts';
import { csvLine, printable, refuseJson } from '../../output/text.ts';

interface ListOptions {
  by?: string;
  action?: string;
  subject?: string;
  key?: string;
  since?: number;
  until?: number;
  limit?: number;
  follow?: boolean;
  export?: 'csv';
}

const usualLimit = 20;

export function listCommand(audit: Command, cli: Cli): void {
  audit
    .command('list')
    .description('events, newest first')
    .option('--by <who>', 'only what they did: cli:ann@host, key:key_…, daemon; `cli` is every operator')
    .option('--action <name>', 'only this action, or all that begin with it: `rank.refused`, `key`')
    .option('--subject <id>', 'only what was done to this key, place, workspace or rank change')
    .option('--key <key>', 'only what has to do with this key (id, or name: then the newest key that had it)')
    .option('--since <when>', 'only from then on: 24h ago, or 2026-05-01T18:00Z', moment)
    .option('--until <when>', 'only what happened before then', moment)
    .option(
      '--limit <n>',
      `at most this many (default: ${usualLimit}; with --export, all)`,
      wholeNumber(1, 100_000_000),
    )
    .addOption(
      new Option(
        '--follow',
        'show the newest events, oldest first, then new ones as they come, until SIGINT or SIGTERM',
      ).conflicts('until'),
    )
    .addOption(new Option('--export <format>', 'print all of them in this format').choices(['csv']).conflicts('follow'))
    .addHelpText(
      'after',
      `\nWith --follow --json each event is a document on a line of its own: {"v":1,"event":{…}}.\n${examples(
        'rankd audit list --since 24h --limit 500 --json',
        'rankd audit list --action key --by cli',
        'rankd audit list --key my-game --action rank.refused',
        'rankd audit list --follow',
        'rankd audit list --since 30d --export csv > audit.csv',
      )}`,
    )
    .action((options: ListOptions) => list(cli, options));
}

async function list(cli: Cli, options: ListOptions): Promise<void> {
  if (options.export !== undefined) refuseJson(cli, '--export');
  refuseEmptyPeriod(options);
  refuseUnknownAction(options.action);
  await cli.withStore(async (ports) => {
    const { by, action, subject, key, since, until, limit = usualLimit } = options;
    const query = { by, action, subject, key, since, until };
    const selection = await withKeyId(ports, query, (ambiguity) => cli.warn(ambiguity));
    if (options.export !== undefined) {
      const pages = eventPages(ports, { ...selection, limit: options.limit ?? Number.POSITIVE_INFINITY });
      return whileStreaming(cli, 'exporting', () => printCsv(cli, pages));
    }
    if (options.follow) return follow(cli, (stop) => followEvents(ports, { ...selection, limit }, stop));
    const events = await listEvents(ports, { ...selection, limit });
    cli.print(
      { events: events.map(({ event, keyName = null }) => ({ ...eventDocument(event), keyName })) },
      table(['at', 'by', 'action', 'subject', 'detail'], events.map(cellsOf)),
    );
    if (events.length === 0) cli.say('No such event was recorded.');
    if (events.length === limit) cli.say(`The newest ${limit} are shown; --limit shows more.`);
  });
}

/** A misspelt action would find nothing, which looks like good news. */
function refuseUnknownAction(action: string | undefined): void {
  if (action === undefined || auditActions.some((one) => one === action || one.startsWith(`${action}.`))) return;
  const names = [...auditActions, ...new Set(auditActions.map((one) => one.replace(/\..*/, '')))];
  const meant = suggest(action, names);
  throw new RankdError('usage', `The audit has no action "${action}".`, {
    hint: meant === undefined ? `--action takes one of ${auditActions.join(', ')}` : `--action ${meant}`,
  });
}

async function printCsv(cli: Cli, pages: AsyncIterable<AuditEvent[]>): Promise<void> {
  cli.io.stdout(csvLine(['id', 'at', 'by', 'action', 'subject', 'detail']));
  for await (const events of pages) {
    const lines = events.map((event) => csvLine([event.id, ...rowOf(event)]));
    cli.io.stdout(lines.join(''));
    await cli.io.drained();
  }
}

/** Prints events as they come, until the process is asked to stop or nobody reads the output any more. */
async function follow(cli: Cli, events: (stop: AbortSignal) => AsyncIterable<AuditEvent>): Promise<void> {
  const stopping = new AbortController();
  void Promise.race([cli.io.stopSignal, cli.io.readerGone]).then(() => stopping.abort());
  for await (const event of events(stopping.signal)) {
    const [, ...rest] = rowOf(event).map(printable);
    cli.print({ event: eventDocument(event) }, (screen) => [timeText(event.at, screen), ...rest].join('  '));
  }
}

function cellsOf(told: AuditEventView): Cell[] {
  const { event, keyName, keyNames } = told;
  const [, by = '', action = '', subject = '', detail = ''] = rowOf(event);
  return [
    when(event.at),
    keyName === undefined ? by : `key:${keyName}`,
    action,
    (screen) => (screen && keyNames.get(subject)) ?? subject,
    (screen) => (screen === undefined ? detail : inWords(told, screen)),
  ];
}

/** e.g. `name my-game, scopes verify rank`, without what has no value. */
function inWords({ event, keyNames, roleNames }: AuditEventView, screen: Screen): string {
  const fields = Object.entries(event.detail).flatMap(([field, value]) => {
    if (value === null || (Array.isArray(value) && value.length === 0)) return [];
    const name = labelOf(field);
    if (field === 'keyId') return [`key ${keyNames.get(String(value)) ?? value}`];
    if (field.endsWith('At') && typeof value === 'number') return [`${name} ${timeText(value, screen)}`];
    if (field.startsWith('roles') && Array.isArray(value))
      return [`${name} ${value.map((id) => roleNames.get(id) ?? id).join(' + ')}`];
    if (isMove(value)) return [`${name} ${settingText(value.from ?? 'none')} → ${settingText(value.to ?? 'none')}`];
    return [`${name} ${Array.isArray(value) ? value.join(' ') : settingText(value)}`];
  });
  return fields.join(', ');
}

/** A setting's old and new value. */
function isMove(value: unknown): value is { from: unknown; to: unknown } {
  return typeof value === 'object' && value !== null && 'from' in value && 'to' in value;
}

/** An event as a line has it. */
function rowOf(event: AuditEvent): string[] {
  const { at, by, action, subject, detail } = eventDocument(event);
  return [at, by, action, subject, JSON.stringify(detail)];
}
