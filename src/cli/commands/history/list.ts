import type { Command } from 'commander';
import { isSimulatedGroup } from '../../../core/group-title.ts';
import type { RankChange } from '../../../core/model.ts';
import { changeDocument, changeTitle, holdWords, wayOf, whoAsked, withId } from '../../../usecases/documents/change.ts';
import { type ChangeView, listChanges } from '../../../usecases/history/history.ts';
import { withKeyId } from '../../../usecases/keys/find-key.ts';
import type { Cli } from '../../cli.ts';
import { wholeNumber } from '../../input/arguments.ts';
import { examples } from '../../output/help.ts';
import { type Cell, table, when } from '../../output/table.ts';
import { queryOf, type SelectionOptions, stateOption, withSelection } from './selection.ts';

export function listCommand(history: Command, cli: Cli): void {
  withSelection(history.command('list').description('rank changes, newest first'))
    .addOption(stateOption())
    .option('--limit <n>', 'at most this many', wholeNumber(1, 100_000), 20)
    .addHelpText(
      'after',
      examples(
        'rankd history list',
        'rankd history list --key my-game --state refused failed',
        'rankd history list --user 1001 --limit 5 --json',
        'rankd history list --place 920587237 --since 2026-05-01T18:00Z --until 2026-05-01T19:00Z',
      ),
    )
    .action((options: SelectionOptions & { limit: number }) => list(cli, options));
}

async function list(cli: Cli, { limit, ...options }: SelectionOptions & { limit: number }): Promise<void> {
  const query = await queryOf(cli, options);
  await cli.withStore(async (ports) => {
    const selection = await withKeyId(ports, query, (ambiguity) => cli.warn(ambiguity));
    const changes = await listChanges(ports, { ...selection, limit });
    cli.print(
      { changes: changes.map(changeDocument) },
      table(['when', 'state', 'who', 'member', 'change', 'via', 'reason', 'why not', 'id'], changes.map(toRow)),
    );
    if (changes.length === 0) cli.say('There is no such rank change.');
    if (changes.length === limit) cli.say(`The newest ${limit} are shown; --limit shows more.`);
  });
}

function toRow(told: ChangeView): Cell[] {
  const { change } = told;
  return [
    when(change.requestedAt),
    stateOf(change),
    whoAsked(change),
    withId(change.rankeeName || (told.userName ?? ''), change.rankeeId),
    [changeTitle(change), holdWords(change)].filter(Boolean).join(', '),
    wayOf(told),
    change.reason ?? '-',
    change.state === 'applied' ? '-' : change.message,
    change.id,
  ];
}

function stateOf({ state, dryRun, group }: RankChange): string {
  const remarks = [...(dryRun ? ['test'] : []), ...(isSimulatedGroup(group) ? ['simulated'] : [])];
  return remarks.length === 0 ? state : `${state} (${remarks.join(', ')})`;
}
