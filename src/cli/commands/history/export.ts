import { type Command, Option } from 'commander';
import { detailedChangeDocument } from '../../../usecases/documents/change.ts';
import { changePages } from '../../../usecases/history/history.ts';
import { withKeyId } from '../../../usecases/keys/find-key.ts';
import type { Cli } from '../../cli.ts';
import { examples } from '../../output/help.ts';
import { whileStreaming } from '../../output/terminal.ts';
import { csvLine, jsonLine, refuseJson } from '../../output/text.ts';
import { queryOf, type SelectionOptions, stateOption, withSelection } from './selection.ts';

type Format = 'csv' | 'jsonl';

export function exportCommand(history: Command, cli: Cli): void {
  withSelection(history.command('export').description('all rank changes, newest first, as CSV or JSON lines'))
    .addOption(stateOption())
    .addOption(
      new Option('--format <format>', 'csv, or jsonl: one JSON document on each line').choices(['csv', 'jsonl']),
    )
    .addHelpText(
      'after',
      `\nCSV unless --format says otherwise, or --json: then one JSON document. Lists of role ids are separated by spaces in CSV, lists of names by semicolons.\n${examples(
        'rankd history export > history.csv',
        'rankd history export --since 30d --state applied --format jsonl',
      )}`,
    )
    .action((options: SelectionOptions & { format?: Format }) => exportChanges(cli, options));
}

async function exportChanges(cli: Cli, { format, ...options }: SelectionOptions & { format?: Format }): Promise<void> {
  if (format !== undefined) refuseJson(cli, '--format');
  const query = await queryOf(cli, options);
  const { begin, piece, between, end } = shapes[format ?? (cli.options.json ? 'json' : 'csv')];
  await whileStreaming(cli, 'exporting', () =>
    cli.withStore(async (ports) => {
      const selection = await withKeyId(ports, query, (ambiguity) => cli.warn(ambiguity));
      cli.io.stdout(begin);
      let isFirst = true;
      for await (const changes of changePages(ports, selection)) {
        const text = changes.map((change) => piece(detailedChangeDocument(change))).join(between);
        cli.io.stdout(isFirst || text === '' ? text : between + text);
        isFirst &&= text === '';
        await cli.io.drained();
      }
      cli.io.stdout(end);
    }),
  );
}

type ChangeDocument = ReturnType<typeof detailedChangeDocument>;

const columns = [
  ...(['id', 'state', 'code', 'message', 'rankeeId', 'rankeeName', 'rankerId', 'rankerName', 'newRankId'] as const),
  ...(['roleId', 'rolesBefore', 'rolesAfter', 'by', 'keyId', 'placeId', 'command', 'requestedAt'] as const),
  ...(['finishedAt', 'dryRun', 'phase', 'oldRankName', 'prefix', 'webhookHost', 'undoOf', 'undoId'] as const),
  ...(['idempotencyKey', 'group', 'who', 'via', 'keyName', 'oldRoleId', 'reason', 'simulated', 'userName'] as const),
] satisfies Array<keyof ChangeDocument>;

/** Names for people who read a spreadsheet, in addition to the ids. */
const nameColumns: Record<string, (change: ChangeDocument) => string> = {
  roleName: (change) => namesIn(change, [change.roleId]),
  oldRoleName: (change) => namesIn(change, [change.oldRoleId]),
  rolesBeforeNames: (change) => namesIn(change, change.rolesBefore),
  rolesAfterNames: (change) => namesIn(change, change.rolesAfter ?? []),
  hold: ({ hold }) => hold?.does ?? '',
  holdKind: ({ hold }) => hold?.kind ?? '',
  holdEndsAt: ({ hold }) => hold?.endsAt ?? '',
};

/** Separated by semicolons, as names have spaces. A role that the plan did not touch has its id. */
function namesIn({ roles }: ChangeDocument, ids: Array<number | null>): string {
  const known = ids.filter((id) => id !== null);
  return known.map((id) => roles.find((role) => role.id === id)?.name ?? String(id)).join('; ');
}

interface Shape {
  begin: string;
  piece(change: ChangeDocument): string;
  between: string;
  end: string;
}

const shapes = {
  csv: {
    begin: csvLine([...columns, ...Object.keys(nameColumns)]),
    piece: (change) =>
      csvLine([
        ...columns.map((column) => cellOf(change[column])),
        ...Object.values(nameColumns).map((of) => of(change)),
      ]),
    between: '',
    end: '',
  },
  jsonl: { begin: '', piece: (change) => jsonLine({ v: 1, change }), between: '', end: '' },
  json: { begin: '{"v":1,"changes":[\n', piece: (change) => jsonLine({ ...change }), between: ',', end: ']}\n' },
} satisfies Record<Format | 'json', Shape>;

function cellOf<Value>(value: Value | number[]): Value | string {
  return Array.isArray(value) ? value.join(' ') : value;
}
