import { type Command, Option } from 'commander';
import { requireKeySince } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { moment, wholeNumber } from '../../input/arguments.ts';
import { refuseJson } from '../../output/csv.ts';
import { examples } from '../../output/help.ts';
import { table } from '../../output/table.ts';
import { whileStreaming } from '../../output/waiting.ts';
import { eventDocument, eventRow } from './event-document.ts';
import { exportEvents } from './export.ts';
import { followEvents } from './follow.ts';

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
    .option('--action <name>', 'only this, or all that begin so: `rank.refused`, `key`')
    .option('--subject <id>', 'only what was done to this key, place, workspace or rank change')
    .option('--key <key>', 'only what has to do with this key (id, or name: then the newest key that had it)')
    .option('--since <when>', 'only from then on: 24h ago, or 2026-05-01T18:00Z', moment)
    .option('--until <when>', 'only from before then', moment)
    .option(
      '--limit <n>',
      `at most this many (default: ${usualLimit}; with --export, all)`,
      wholeNumber(1, 100_000_000),
    )
    .addOption(
      new Option(
        '--follow',
        'show the newest, oldest first, then new ones as they come, until SIGINT or SIGTERM',
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
  await cli.withStore(async (store) => {
    const { by, action, subject, since, until, limit = usualLimit } = options;
    const key =
      options.key === undefined
        ? undefined
        : await requireKeySince(store, { idOrName: options.key, since }, (ambiguity) => cli.warn(ambiguity));
    const filter = { by, action, subject, keyId: key?.id, since, until };
    if (options.export !== undefined) {
      const exported = () => exportEvents(cli, store, { filter, most: options.limit });
      return whileStreaming(cli, 'exporting', exported);
    }
    if (options.follow) return followEvents(cli, store, { ...filter, limit });
    const events = await store.listAudit({ ...filter, limit });
    cli.print(
      { events: events.map(eventDocument) },
      table(['at', 'by', 'action', 'subject', 'detail'], events.map(eventRow)),
    );
    if (events.length === 0) cli.say('No such event was recorded.');
    if (events.length === limit) cli.say(`The newest ${limit} are shown; --limit shows more.`);
  });
}
