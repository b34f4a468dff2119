import { resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { RankdError } from '../../base/errors.ts';
import { counted, suggest } from '../../base/text.ts';
import { auditActions } from '../../core/events.ts';
import type { AuditEvent } from '../../core/model.ts';
import {
  type AuditEventView,
  eventDocument,
  eventPages,
  followEvents,
  listEvents,
  verdictDocument,
} from '../../usecases/history/audit.ts';
import { type AuditVerdict, describeBreak, verifyAudit } from '../../usecases/history/verify-audit.ts';
import { withKeyId } from '../../usecases/keys/find-key.ts';
import type { Cli } from '../cli.ts';
import { choice, command, commandGroup, flag, option, type ValuesOf } from '../command.ts';
import { moment, refuseEmptyPeriod, wholeNumber } from '../input/arguments.ts';
import { ExitCode } from '../output/errors.ts';
import { settingText } from '../output/help.ts';
import { type Cell, labelOf, type Screen, table, timeText, when } from '../output/table.ts';
import { whileStreaming, whileWorking } from '../output/terminal.ts';
import { csvLine, printable, refuseJson } from '../output/text.ts';

const usualLimit = 20;

const listOptions = {
  by: option(
    '--by <who>',
    'only events by this operator, key or daemon: cli:ann@host, web:ann@host, key:key_…, discord:44…, daemon; `cli` alone means every operator in a shell, `web` on the page, `discord` on Discord',
  ),
  action: option('--action <name>', 'only this action or group of actions, such as `rank.refused` or `key`'),
  subject: option('--subject <id>', 'only events about this key, place, workspace or rank change'),
  key: option(
    '--key <key>',
    'only events that involve this key (id or name; if several keys had the name, the newest)',
  ),
  since: option('--since <when>', 'only events since then: 24h ago, or 2026-05-01T18:00Z', moment),
  until: option('--until <when>', 'only events before then', moment),
  limit: option(
    '--limit <n>',
    `at most this many (default: ${usualLimit}; with --export, all)`,
    wholeNumber(1, 100_000_000),
  ),
  follow: flag(
    '--follow',
    'show the newest events, oldest first, then new ones as they are recorded, until Ctrl-C',
  ).conflicts('until'),
  export: choice('--export <format>', 'print all matching events in this format', ['csv']).conflicts('follow'),
};

export const auditCommands = commandGroup({
  name: 'audit',
  about: 'what operators, keys and refused callers did',
  examples: ['rankd audit list --since 24h', 'rankd audit verify'],
  commands: [
    command({
      name: 'list',
      about: 'events, newest first',
      options: listOptions,
      help: '\nWith --follow --json, each event is a JSON document on a separate line: {"v":1,"event":{…}}.\n',
      examples: [
        'rankd audit list --since 24h --limit 500 --json',
        'rankd audit list --action key --by cli',
        'rankd audit list --key my-game --action rank.refused',
        'rankd audit list --follow',
        'rankd audit list --since 30d --export csv > audit.csv',
      ],
      run: list,
    }),
    command({
      name: 'verify',
      about: 'check the audit for edited and missing events; exits with 5 if it finds any',
      options: {
        head: option('--head <hash>', 'also check that this earlier head hash is still in the chain', headHash),
        headFile: option(
          '--head-file <file>',
          'also check every head hash that was recorded in this file (audit.head_file)',
        ),
      },
      help: `
Each event contains a SHA-256 hash of itself and of the event before it. If an event was edited, removed, inserted or
moved, the command prints its number and exits with 5.

The chain alone can't reveal everything: anyone who can write to the database can compute the whole chain again, or cut
off its newest events and lower the stored number of the last event. So store the hashes somewhere else: with the
setting audit.head_file, the daemon and the commands add the hash of each event to a file, and \`--head-file FILE\` checks all of
them. \`--head HASH\` checks one that this command printed. Events that retention (audit.keep) has removed can no longer
be checked.
`,
      examples: [
        'rankd audit verify',
        'rankd audit verify --head 4f1c…',
        'rankd audit verify --head-file audit.heads',
        'rankd audit verify --json',
      ],
      run: verify,
    }),
  ],
});

async function list(cli: Cli, options: ValuesOf<typeof listOptions>): Promise<void> {
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
    if (events.length === 0) cli.say('No recorded event matches.');
    if (events.length === limit) cli.say('There may be older ones; --limit shows more.');
  });
}

/** Rejects an unknown action, because an empty list of events would look like good news. */
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

/** Prints events as they are recorded, until a stop signal arrives or the output is closed. */
async function follow(cli: Cli, events: (stop: AbortSignal) => AsyncIterable<AuditEvent>): Promise<void> {
  const stopping = new AbortController();
  void Promise.race([cli.io.stopSignal, cli.io.readerGone]).then(() => stopping.abort());
  for await (const event of events(stopping.signal)) {
    const [, ...rest] = rowOf(event).map(printable);
    cli.print({ event: eventDocument(event) }, (screen) => [timeText(event.at, screen), ...rest].join('  '));
  }
}

function cellsOf(view: AuditEventView): Cell[] {
  const { event, keyName, keyNames } = view;
  const [, by = '', action = '', subject = '', detail = ''] = rowOf(event);
  return [
    when(event.at),
    keyName === undefined ? by : `key:${keyName}`,
    action,
    (screen) => (screen && keyNames.get(subject)) ?? subject,
    (screen) => (screen === undefined ? detail : inWords(view, screen)),
  ];
}

/** Formats an event's details, e.g. `name my-game, scopes verify rank`, without empty fields. */
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

function isMove(value: unknown): value is { from: unknown; to: unknown } {
  return typeof value === 'object' && value !== null && 'from' in value && 'to' in value;
}

function rowOf(event: AuditEvent): string[] {
  const { at, by, action, subject, detail } = eventDocument(event);
  return [at, by, action, subject, JSON.stringify(detail)];
}

async function verify(cli: Cli, { head, headFile }: { head?: string; headFile?: string }): Promise<void> {
  // read the heads before the audit log, so that the chain contains every one of them
  const notedHeads = headFile === undefined ? undefined : await headsIn(resolve(cli.io.cwd, headFile));
  const questions = { hasRetention: () => hasRetention(cli), notedHead: head, notedHeads };
  const verified = () => cli.withStore((ports) => verifyAudit(ports, questions));
  const verdict = await whileWorking(cli.line, 'reading the audit', verified);
  cli.print(verdictDocument(verdict), describe(verdict));
  if (!verdict.isIntact) throw new ExitCode(5);
}

function describe(verdict: AuditVerdict): string {
  const { rows, anchor, head, breaks, breakCount, notedHead, notedHeads } = verdict;
  const isExplained = breaks.every(({ kind }) => kind !== 'unexplained');
  const unlisted = breakCount - breaks.length;
  return [
    breakCount === 0
      ? `ok: ${counted(rows, 'event')}, unchanged and in order`
      : `BROKEN in ${counted(breakCount, 'place')}`,
    ...breaks.map(describeBreak),
    ...(unlisted > 0 ? [`and ${unlisted} more`] : []),
    ...(anchor.id > 0 && isExplained ? [`events before #${anchor.id + 1} were removed by retention (audit.keep)`] : []),
    ...(notedHead === undefined ? [] : [describeNotedHead(verdict)]),
    ...(notedHeads === undefined ? [] : [describeNotedHeads(notedHeads)]),
    `head: ${head.hash} (event #${head.id})`,
  ].join('\n');
}

function describeNotedHead({ anchor, notedHead }: AuditVerdict): string {
  if (notedHead === 'found') return 'the given head is in the chain: no event up to it has changed since';
  if (notedHead === 'removed')
    return 'the event of the given head has been removed since then, so events before it can no longer be checked';
  const retention = anchor.id > 0 ? ', unless this head is older than the events that retention kept' : '';
  return `NOT FOUND: the given head is not in the chain, which was rewritten or cut off${retention}`;
}

function describeNotedHeads({ found, removed }: { found: number; removed: number }): string {
  const notChecked = removed === 0 ? '' : `; ${removed} removed since and not checked`;
  return `recorded heads: ${found} in the chain${notChecked}`;
}

export async function hasRetention(cli: Cli): Promise<boolean> {
  return (await cli.loadConfig()).config.retention.auditMs !== undefined;
}

async function headsIn(file: string): Promise<Map<number, Set<string>>> {
  const { readHeads } = await import('../../usecases/history/audit-heads.ts');
  const heads = await readHeads(file).catch((cause) => {
    throw new RankdError('usage', `The recorded heads in ${file} can't be read.`, {
      hint: 'name the file from audit.head_file, or a copy of it, that this user can read',
      cause,
    });
  });
  if (heads.size > 0) return heads;
  throw new RankdError('usage', `${file} contains no audit heads.`, {
    hint: 'name the file from audit.head_file, or a copy of it; each line has a time, an event number and a hash',
  });
}

function headHash(text: string): string {
  if (/^[\da-f]{64}$/i.test(text)) return text.toLowerCase();
  throw new InvalidArgumentError('It must be the 64 hexadecimal digits that `rankd audit verify` prints.');
}
