import { type Command, Option } from 'commander';
import type { ChangeState, RankChange } from '../../core/model.ts';
import { RankdError } from '../../errors.ts';
import { requireKey } from '../../usecases/keys.ts';
import { anyId, wholeNumber } from '../arguments.ts';
import { changeDocument, detailedChangeDocument } from '../change-document.ts';
import type { Cli } from '../cli.ts';
import { facts } from '../facts.ts';
import { examples } from '../help.ts';
import { table } from '../table.ts';
import { isoOrNull } from '../time.ts';

interface ListOptions {
  limit: number;
  key?: string;
  user?: number;
  state?: ChangeState[];
}

const states = ['pending', 'applied', 'refused', 'failed', 'unknown'] as const satisfies ChangeState[];

export function historyCommands(program: Command, cli: Cli): void {
  const history = program
    .command('history')
    .description('every rank change that was asked for')
    .addHelpText('after', examples('rankd history list', 'rankd history show chg_0aB1cD2eF3gH'));
  history
    .command('list')
    .description('rank changes, newest first')
    .option('--limit <n>', 'at most this many', wholeNumber(1, 100_000), 20)
    .option('--key <key>', 'only those asked for with this key (id or name)')
    .option('--user <id>', 'only those of this member', anyId)
    .addOption(new Option('--state <state...>', 'only those in one of these states').choices(states))
    .addHelpText(
      'after',
      examples(
        'rankd history list',
        'rankd history list --key my-game --state refused failed',
        'rankd history list --user 1001 --limit 5 --json',
      ),
    )
    .action((options: ListOptions) => list(cli, options));
  history
    .command('show')
    .description('one rank change with all that is known of it')
    .argument('<id>', 'id of the change, as the list and the header x-rank-change give it')
    .addHelpText('after', examples('rankd history show chg_0aB1cD2eF3gH'))
    .action((id: string) => show(cli, id));
}

async function list(cli: Cli, { limit, key: idOrName, user, state }: ListOptions): Promise<void> {
  await cli.withStore(async (store) => {
    const key = idOrName === undefined ? undefined : await requireKey(store, idOrName);
    const changes = await store.listChanges({
      limit,
      ...(key !== undefined && { keyId: key.id }),
      ...(user !== undefined && { rankeeId: user }),
      ...(state !== undefined && { states: state }),
    });
    const keyNames = new Map((await store.listKeys()).map(({ id, name }) => [id, name]));
    const rows = changes.map((change) => toRow(change, keyNames));
    cli.print(
      { changes: changes.map(changeDocument) },
      table(['requested', 'id', 'state', 'member', 'rank', 'key', 'message'], rows),
    );
    if (changes.length === 0) cli.say('There is no such rank change.');
    if (changes.length === limit) cli.say(`The newest ${limit} are shown; --limit shows more.`);
  });
}

function toRow(change: RankChange, keyNames: ReadonlyMap<string, string>): string[] {
  return [
    isoOrNull(change.requestedAt) ?? '',
    change.id,
    change.dryRun ? `${change.state} (test)` : change.state,
    change.rankeeName === '' ? String(change.rankeeId) : `${change.rankeeName} (${change.rankeeId})`,
    String(change.newRankId),
    change.keyId === undefined ? '-' : (keyNames.get(change.keyId) ?? change.keyId),
    change.message,
  ];
}

async function show(cli: Cli, id: string): Promise<void> {
  const change = await cli.withStore((store) => store.findChange(id));
  if (change === undefined) {
    throw new RankdError('not_found', `There is no rank change with the id "${id}".`, { hint: 'rankd history list' });
  }
  const document = detailedChangeDocument(change);
  cli.print({ change: document }, facts(document));
}
