import { Argument, type Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import type { Key, WhitelistEntry } from '../../core/model.ts';
import type { Store } from '../../ports/index.ts';
import { chooseKey, requireKey } from '../../usecases/keys/keys.ts';
import type { Cli } from '../cli.ts';
import { ExitCode } from '../exit-code.ts';
import { asPlaceId } from '../input/arguments.ts';
import { collectIds, readIds } from '../input/id-list.ts';
import { examples } from '../output/help.ts';
import { table } from '../output/table.ts';

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
    .option('--note <text>', 'what the place is, for whoever reads the list')
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
    .addHelpText('after', examples('rankd whitelist remove 920587237', 'rankd whitelist remove --file - < places.txt'))
    .action((places: number[], options: PlaceOptions) =>
      change(cli, { ...options, places, done: 'removed' }, (store, selection) =>
        store.removeEntries(selection, cli.by),
      ),
    );
  placesCommand(whitelist, 'enable', 'let the key be used from these places again')
    .addHelpText('after', examples('rankd whitelist enable 920587237'))
    .action((places: number[], options: PlaceOptions) =>
      change(cli, { ...options, places, done: 'enabled' }, (store, selection) =>
        store.setEntriesActive({ ...selection, active: true }, cli.by),
      ),
    );
  placesCommand(whitelist, 'disable', 'refuse the key from these places, but keep them on the list')
    .addHelpText('after', examples('rankd whitelist disable 920587237 --key my-game'))
    .action((places: number[], options: PlaceOptions) =>
      change(cli, { ...options, places, done: 'disabled' }, (store, selection) =>
        store.setEntriesActive({ ...selection, active: false }, cli.by),
      ),
    );
  whitelist
    .command('check')
    .description('tell whether the key may be used from a place; ends with 5 where the answer is no')
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
    .option('--file <file>', 'also take ids from this file, one a line; - is standard input');
}

async function add(cli: Cli, places: number[], { key: idOrName, file, note }: PlaceOptions): Promise<void> {
  const placeIds = await readIds(cli.io, { ids: places, file });
  await cli.withStore(async (store) => {
    const key = await chooseKey({ store, clock: systemClock }, idOrName);
    refuseRevoked(key);
    const before = await store.listEntries({ keyId: key.id });
    const wasActive = new Set(before.filter(({ active }) => active).map(({ placeId }) => placeId));
    const entries = await store.addEntries({ keyId: key.id, placeIds, ...(note !== undefined && { note }) }, cli.by);
    printOutcomes(cli, key, entries, ({ added, placeId }) =>
      added ? 'added' : wasActive.has(placeId) ? 'already there' : 're-enabled',
    );
  });
  cli.say(
    'A place counts if the game sends this very id as placeid: game.PlaceId, or game.GameId (the universe id) where it sends that.',
  );
}

async function list(cli: Cli, { key: idOrName }: { key?: string }): Promise<void> {
  await cli.withStore(async (store) => {
    const named = idOrName === undefined ? undefined : await requireKey(store, idOrName);
    const keys =
      named === undefined ? (await store.listKeys()).filter(({ revokedAt }) => revokedAt === undefined) : [named];
    const lists = keys.map(async (key) =>
      (await store.listEntries({ keyId: key.id })).map((entry) => entryDocument(key, entry)),
    );
    const documents = (await Promise.all(lists)).flat();
    const rows = documents.map(({ placeId, keyName, active, addedAt, declaredIn, note }) => [
      String(placeId),
      keyName,
      active ? 'yes' : 'no',
      addedAt,
      declaredIn ?? '-',
      note,
    ]);
    cli.print({ entries: documents }, table(['place', 'key', 'active', 'added', 'declared in', 'note'], rows));
    if (documents.length === 0) cli.say('No place is whitelisted.\ntry: rankd whitelist add PLACE');
  });
}

type Selection = { keyId: string; placeIds: number[] };

/** Does `work` to places that are on the whitelist already; `done` is what the operator reads then. */
async function change(
  cli: Cli,
  { places, key: idOrName, file, done }: PlaceOptions & { places: number[]; done: string },
  work: (store: Store, selection: Selection) => Promise<WhitelistEntry[]>,
): Promise<void> {
  const placeIds = await readIds(cli.io, { ids: places, file });
  await cli.withStore(async (store) => {
    const key = await chooseKey({ store, clock: systemClock }, idOrName);
    printOutcomes(cli, key, await work(store, { keyId: key.id, placeIds }), () => done);
  });
}

async function check(cli: Cli, place: number, { key: idOrName }: { key?: string }): Promise<void> {
  await cli.withStore(async (store) => {
    const key = await chooseKey({ store, clock: systemClock }, idOrName);
    const entry = (await store.listEntries({ keyId: key.id })).find(({ placeId }) => placeId === place);
    const allowed = entry?.active === true;
    cli.print({ allowed, entry: entry === undefined ? null : entryDocument(key, entry) }, allowed ? 'yes' : 'no');
    if (allowed) return;
    const what = entry === undefined ? 'not on the whitelist of' : 'disabled for';
    cli.say(`Place ${place} is ${what} key "${key.name}".`);
    cli.say(`try: rankd whitelist ${entry === undefined ? 'add' : 'enable'} ${place} --key ${key.name}`);
    throw new ExitCode(5);
  });
}

function refuseRevoked({ name, revokedAt }: Key): void {
  if (revokedAt === undefined) return;
  throw new RankdError('conflict', `Key "${name}" is revoked; a whitelist is of no use to it.`, {
    hint: 'rankd key create NAME',
  });
}

/** One line and one document per place, in the order of the ids given. */
function printOutcomes<Entry extends WhitelistEntry>(
  cli: Cli,
  key: Key,
  entries: Entry[],
  outcomeOf: (entry: Entry) => string,
): void {
  const documents = entries.map((entry) => ({ ...entryDocument(key, entry), outcome: outcomeOf(entry) }));
  cli.print({ entries: documents }, documents.map(({ placeId, outcome }) => `Place ${placeId}: ${outcome}`).join('\n'));
}

/** An entry as `--json` shows it; times are ISO 8601. */
function entryDocument(key: Key, { placeId, active, note, addedAt, declaredIn }: WhitelistEntry) {
  return {
    placeId,
    keyId: key.id,
    keyName: key.name,
    active,
    note,
    addedAt: new Date(addedAt).toISOString(),
    declaredIn: declaredIn ?? null,
  };
}
