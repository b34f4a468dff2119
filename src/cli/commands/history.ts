import { isSimulatedGroup } from '../../core/group-title.ts';
import type { RankChange } from '../../core/model.ts';
import {
  changeCells,
  changeDocument,
  changeHeadings,
  changeTitle,
  detailedChangeDocument,
  holdWords,
  namedRoles,
  originOf,
  whoRequested,
  withId,
} from '../../usecases/history/change-document.ts';
import { type ChangeView, changePages, listChanges, showChange } from '../../usecases/history/history.ts';
import { withKeyId } from '../../usecases/keys/find-key.ts';
import type { Cli } from '../cli.ts';
import { argument, choice, command, commandGroup, option, type ValuesOf } from '../command.ts';
import { wholeNumber } from '../input/arguments.ts';
import { queryOf, selection, state } from '../input/selection.ts';
import { type Cell, facts, table, when } from '../output/table.ts';
import { whileStreaming } from '../output/terminal.ts';
import { csvLine, jsonLine, refuseJson } from '../output/text.ts';
import { undoCommand } from './undo.ts';

const listOptions = {
  ...selection,
  state,
  limit: option('--limit <n>', 'at most this many', wholeNumber(1, 100_000), 20),
};
const exportOptions = {
  ...selection,
  state,
  format: choice('--format <format>', 'csv, or jsonl: one JSON document on each line', ['csv', 'jsonl']),
};

export const historyCommands = commandGroup({
  name: 'history',
  about: 'every rank change that was requested',
  examples: [
    'rankd history list',
    'rankd history show chg_VbflntX4kQ2mX7Lp',
    'rankd history undo --key my-game --since 1h',
  ],
  commands: [
    command({
      name: 'list',
      about: 'rank changes, newest first',
      options: listOptions,
      examples: [
        'rankd history list',
        'rankd history list --key my-game --state refused failed',
        'rankd history list --user 1001 --limit 5 --json',
        'rankd history list --place 920587237 --since 2026-05-01T18:00Z --until 2026-05-01T19:00Z',
      ],
      run: list,
    }),
    command({
      name: 'show',
      about: 'everything about one rank change',
      args: [argument('<id>', 'id of the change, from the list or the x-rank-change header')],
      examples: ['rankd history show chg_VbflntX4kQ2mX7Lp'],
      run: show,
    }),
    command({
      name: 'export',
      about: 'all rank changes, newest first, as CSV or JSON lines',
      options: exportOptions,
      help: '\nThe default is CSV; with --json, it is one JSON document. In CSV, role ids are separated by spaces, and names by semicolons.\n',
      examples: [
        'rankd history export > history.csv',
        'rankd history export --since 30d --state applied --format jsonl',
      ],
      run: exportChanges,
    }),
    undoCommand,
  ],
});

async function list(cli: Cli, { limit, ...options }: ValuesOf<typeof listOptions>): Promise<void> {
  const query = await queryOf(cli, options);
  await cli.withStore(async (ports) => {
    const selected = await withKeyId(ports, query, (ambiguity) => cli.warn(ambiguity));
    const changes = await listChanges(ports, { ...selected, limit });
    cli.print(
      { changes: changes.map(changeDocument) },
      table(['when', 'state', 'who', 'member', 'change', 'via', 'reason', 'why not', 'id'], changes.map(toRow)),
    );
    if (changes.length === 0)
      cli.say(Object.values(options).some(Boolean) ? 'No rank change matches.' : 'There is no rank change yet.');
    if (changes.length === limit) cli.say('There may be older ones; --limit shows more.');
  });
}

function toRow(view: ChangeView): Cell[] {
  const { change, userName } = view;
  return [
    when(change.requestedAt),
    stateOf(change),
    whoRequested(change),
    withId(change.rankeeName || (userName ?? ''), change.rankeeId),
    [changeTitle(change), holdWords(change)].filter(Boolean).join(', '),
    originOf(view),
    change.reason ?? '-',
    change.state === 'applied' ? '-' : change.message,
    change.id,
  ];
}

function stateOf({ state, dryRun, group }: RankChange): string {
  const remarks = [...(dryRun ? ['test'] : []), ...(isSimulatedGroup(group) ? ['simulated'] : [])];
  return remarks.length === 0 ? state : `${state} (${remarks.join(', ')})`;
}

async function show(cli: Cli, id: string): Promise<void> {
  const view = await cli.withStore((ports) => showChange(ports, id));
  const document = detailedChangeDocument(view);
  const named = (ids: number[] | null) => ids && namedRoles(view.change, ids);
  const { roles: _, rolesBefore, rolesAfter, ...rest } = document;
  const text = {
    ...rest,
    change: changeTitle(view.change),
    rolesBefore: named(rolesBefore),
    rolesAfter: named(rolesAfter),
  };
  cli.print({ change: document }, facts(text));
}

async function exportChanges(cli: Cli, { format, ...options }: ValuesOf<typeof exportOptions>): Promise<void> {
  if (format !== undefined) refuseJson(cli, '--format');
  const query = await queryOf(cli, options);
  const { begin, piece, between, end } = shapes[format ?? (cli.options.json ? 'json' : 'csv')];
  await whileStreaming(cli, 'exporting', () =>
    cli.withStore(async (ports) => {
      const selected = await withKeyId(ports, query, (ambiguity) => cli.warn(ambiguity));
      cli.io.stdout(begin);
      let isFirst = true;
      for await (const changes of changePages(ports, selected)) {
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

const shapes = {
  csv: {
    begin: csvLine(changeHeadings),
    piece: (change: ChangeDocument) => csvLine(changeCells(change)),
    between: '',
    end: '',
  },
  jsonl: { begin: '', piece: (change: ChangeDocument) => jsonLine({ v: 1, change }), between: '', end: '' },
  json: {
    begin: '{"v":1,"changes":[\n',
    piece: (change: ChangeDocument) => jsonLine({ ...change }),
    between: ',',
    end: ']}\n',
  },
};
