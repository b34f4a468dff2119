import { type Command, Option } from 'commander';
import { detailedChangeDocument } from '../../change-document.ts';
import type { Cli } from '../../cli.ts';
import { csvLine } from '../../csv.ts';
import { examples } from '../../help.ts';
import { jsonLine } from '../../safe-text.ts';
import { type SelectionOptions, selectionOf, stateOption, withSelection } from './selection.ts';

type Format = 'csv' | 'jsonl';

const pageRows = 500;

export function exportCommand(history: Command, cli: Cli): void {
  withSelection(history.command('export').description('all rank changes, newest first, as CSV or JSON lines'))
    .addOption(stateOption())
    .addOption(new Option('--format <format>', 'csv, or jsonl: one JSON document a line').choices(['csv', 'jsonl']))
    .addHelpText(
      'after',
      `\nCSV unless --format or --json says otherwise. Lists of roles are separated by spaces there.\n${examples(
        'rankd history export > history.csv',
        'rankd history export --since 30d --state applied --format jsonl',
      )}`,
    )
    .action((options: SelectionOptions & { format?: Format }) => exportChanges(cli, options));
}

/** Page by page: memory stays flat however long the history is. */
async function exportChanges(
  cli: Cli,
  { format = cli.options.json ? 'jsonl' : 'csv', ...options }: SelectionOptions & { format?: Format },
): Promise<void> {
  const toLine = lineOf[format];
  await cli.withStore(async (store) => {
    const selection = await selectionOf(store, options);
    if (format === 'csv') cli.io.stdout(csvLine(columns));
    for (let from: number | undefined = Number.MAX_SAFE_INTEGER; from !== undefined; ) {
      const { changes, next } = await store.pageChanges({ ...selection, limit: pageRows, from });
      cli.io.stdout(changes.map((change) => toLine(detailedChangeDocument(change))).join(''));
      await cli.io.drained();
      from = next;
    }
  });
}

type ChangeDocument = ReturnType<typeof detailedChangeDocument>;

const columns = [
  ...(['id', 'state', 'code', 'message', 'rankeeId', 'rankeeName', 'rankerId', 'rankerName', 'newRankId'] as const),
  ...(['roleId', 'rolesBefore', 'rolesAfter', 'by', 'keyId', 'placeId', 'command', 'requestedAt'] as const),
  ...(['finishedAt', 'dryRun', 'aim', 'oldRankName', 'prefix', 'webhookHost', 'undoOf', 'undoId'] as const),
  'idempotencyKey',
] satisfies Array<keyof ChangeDocument>;

const lineOf = {
  csv: (change) => csvLine(columns.map((column) => cellOf(change[column]))),
  jsonl: (change) => jsonLine({ v: 1, change }),
} as const satisfies Record<Format, (change: ChangeDocument) => string>;

function cellOf<Value>(value: Value | number[]): Value | string {
  return Array.isArray(value) ? value.join(' ') : value;
}
