import { Argument, type Command } from 'commander';
import type { Key, WhitelistEntry } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';
import { changedEntryDocument, entryDocument, placeVerdictDocument } from '../../usecases/documents/whitelist.ts';
import {
  addPlaces,
  type ChangedPlaces,
  checkPlace,
  listPlaces,
  type PlacesCommand,
  removePlaces,
  setPlacesActive,
} from '../../usecases/whitelist/whitelist.ts';
import type { Cli } from '../cli.ts';
import { asPlaceId } from '../input/arguments.ts';
import { collectIds, readIds } from '../input/lists.ts';
import { ExitCode } from '../output/errors.ts';
import { examples } from '../output/help.ts';
import { table, when } from '../output/table.ts';

interface PlaceOptions {
  key?: string;
  file?: string;
  note?: string;
}

const keyOption = ['--key <key>', 'id or name of the key (default: the only one that is accepted)'] as const;

export function whitelistCommands(program: Command, cli: Cli): void {
  const whitelist = program
    .command('whitelist')
    .description('the places from which a key may be used')
    .addHelpText('after', examples('rankd whitelist add 920587237', 'rankd whitelist list'));
  placesCommand(whitelist, 'add', 'let the key be used from these places')
    .option('--note <text>', 'what the place is, for people who read the list')
    .addHelpText(
      'after',
      examples(
        'rankd whitelist add 920587237 --note "main game"',
        'rankd whitelist add --key my-game --file places.txt',
      ),
    )
    .action((places: number[], options: PlaceOptions) => add(cli, places, options));
  whitelist
    .command('list')
    .description('the places of one key, or of every key that is not revoked')
    .option('--key <key>', 'id or name of the key (default: all)')
    .addHelpText('after', examples('rankd whitelist list', 'rankd whitelist list --key my-game --json'))
    .action((options: { key?: string }) => list(cli, options));
  placesCommand(whitelist, 'remove', 'refuse the key from these places and forget them')
    .option('--if-exists', 'a place that is not on the list is no error')
    .addHelpText('after', examples('rankd whitelist remove 920587237', 'rankd whitelist remove --file - < places.txt'))
    .action((places: number[], { ifExists = false, ...options }: PlaceOptions & { ifExists?: boolean }) =>
      change(cli, { ...options, places, outcome: 'removed' }, (ports, command) =>
        removePlaces(ports, { ...command, ifExists }),
      ),
    );
  placesCommand(whitelist, 'enable', 'let the key be used from these places again')
    .addHelpText('after', examples('rankd whitelist enable 920587237'))
    .action((places: number[], options: PlaceOptions) =>
      change(cli, { ...options, places, outcome: 'enabled' }, (ports, command) =>
        setPlacesActive(ports, { ...command, active: true }),
      ),
    );
  placesCommand(whitelist, 'disable', 'refuse the key from these places, but keep them on the list')
    .addHelpText('after', examples('rankd whitelist disable 920587237 --key my-game'))
    .action((places: number[], options: PlaceOptions) =>
      change(cli, { ...options, places, outcome: 'disabled' }, (ports, command) =>
        setPlacesActive(ports, { ...command, active: false }),
      ),
    );
  whitelist
    .command('check')
    .description('tell whether the key may be used from a place; ends with 5 if the answer is no')
    .argument('<place>', 'place or universe id', asPlaceId)
    .option(...keyOption)
    .addHelpText('after', examples('rankd whitelist check 920587237', 'rankd whitelist check 920587237 --key my-game'))
    .action((place: number, options: { key?: string }) => check(cli, place, options));
}

function placesCommand(whitelist: Command, name: string, description: string): Command {
  return whitelist
    .command(name)
    .description(description)
    .addArgument(new Argument('[place...]', 'place or universe ids').argParser(collectIds))
    .option(...keyOption)
    .option('--file <file>', 'also take ids from this file, one on each line; - is standard input');
}

async function add(cli: Cli, places: number[], { key, file, note }: PlaceOptions): Promise<void> {
  const placeIds = await readIds(cli.io, { ids: places, file });
  const { entries, ...done } = await cli.withStore((ports) => addPlaces(ports, { key, placeIds, note, by: cli.by }), {
    isWriting: true,
  });
  printOutcomes(cli, done.key, entries);
  cli.say(
    'The id must be the one that the game sends as placeid: game.PlaceId, or game.GameId (the universe id) if your script sends that.',
  );
}

async function list(cli: Cli, { key }: { key?: string }): Promise<void> {
  const places = await cli.withStore((ports) => listPlaces(ports, { key }));
  const documents = places.map(({ key, entry }) => entryDocument(key, entry));
  const rows = documents.map(({ placeId, keyName, active, addedAt, declaredIn, note }) => [
    String(placeId),
    keyName,
    active ? 'yes' : 'no',
    when(Date.parse(addedAt)),
    declaredIn ?? '-',
    note,
  ]);
  cli.print({ entries: documents }, table(['place', 'key', 'active', 'added', 'declared in', 'note'], rows));
  if (documents.length === 0) cli.say('No place is whitelisted.\ntry: rankd whitelist add PLACE');
}

/** Changes places that are already on the whitelist; `outcome` is what the operator reads then. */
async function change(
  cli: Cli,
  { places, key, file, outcome }: PlaceOptions & { places: number[]; outcome: string },
  work: (ports: Pick<Ports, 'store' | 'clock'>, command: PlacesCommand) => Promise<ChangedPlaces>,
): Promise<void> {
  const placeIds = await readIds(cli.io, { ids: places, file });
  const { entries, ...done } = await cli.withStore((ports) => work(ports, { key, placeIds, by: cli.by }), {
    isWriting: true,
  });
  printOutcomes(
    cli,
    done.key,
    entries.map((entry) => ({ ...entry, outcome })),
  );
}

async function check(cli: Cli, placeId: number, options: { key?: string }): Promise<void> {
  const verdict = await cli.withStore((ports) => checkPlace(ports, { key: options.key, placeId }));
  const { key, entry, isAllowed } = verdict;
  cli.print(placeVerdictDocument(verdict), isAllowed ? 'yes' : 'no');
  if (isAllowed) return;
  const what = entry === undefined ? 'not on the whitelist of' : 'disabled for';
  cli.say(`Place ${placeId} is ${what} key "${key.name}".`);
  cli.say(`try: rankd whitelist ${entry === undefined ? 'add' : 'enable'} ${placeId} --key ${key.name}`);
  throw new ExitCode(5);
}

/** Prints a line or a document for each place, in the order of the ids that were given. */
function printOutcomes(cli: Cli, key: Key, entries: Array<WhitelistEntry & { outcome: string }>): void {
  const documents = entries.map((entry) => changedEntryDocument(key, entry));
  cli.print({ entries: documents }, documents.map(({ placeId, outcome }) => `Place ${placeId}: ${outcome}`).join('\n'));
}
