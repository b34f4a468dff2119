import { systemClock } from '../../base/clock.ts';
import { describeRefusal } from '../../base/errors.ts';
import { counted } from '../../base/text.ts';
import type { Key, WhitelistEntry } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';
import { shownState } from '../../usecases/keys/key-document.ts';
import {
  addPlaces,
  type ChangedPlaces,
  changedEntryDocument,
  checkPlace,
  entryDocument,
  listPlaces,
  type PlacesCommand,
  placesOf,
  placeVerdictDocument,
  removePlaces,
  setPlacesActive,
} from '../../usecases/whitelist/whitelist.ts';
import type { Cli } from '../cli.ts';
import { argument, command, commandGroup, flag, option } from '../command.ts';
import { asPlaceId, asUniverseId } from '../input/arguments.ts';
import { readIds } from '../input/lists.ts';
import { ExitCode } from '../output/errors.ts';
import { table, when } from '../output/table.ts';

const key = option('--key <key>', 'id or name of the key (default: the only one that is accepted)');
const places = argument('[place...]', 'place or universe ids', asPlaceId);
const placeOptions = {
  key,
  file: option('--file <file>', 'also take ids from this file, one on each line; - is standard input'),
};

export const whitelistCommands = commandGroup({
  name: 'whitelist',
  about: 'the places from which a key may be used',
  examples: ['rankd whitelist add 920587237', 'rankd whitelist list'],
  commands: [
    command({
      name: 'add',
      about: 'accept the key from these places',
      args: [places],
      options: {
        ...placeOptions,
        experience: option(
          '--experience <id>',
          'all places of this experience: its universe id, or address',
          asUniverseId,
        ),
        note: option('--note <text>', 'a note about the place, shown in the list'),
      },
      examples: [
        'rankd whitelist add 920587237 --note "main game"',
        'rankd whitelist add --key my-game --file places.txt',
        'rankd whitelist add --experience 3145678901',
      ],
      run: add,
    }),
    command({
      name: 'list',
      about: 'the places of one key, or of every key that is not revoked',
      options: { key: option('--key <key>', 'id or name of the key (default: all)') },
      examples: ['rankd whitelist list', 'rankd whitelist list --key my-game --json'],
      run: list,
    }),
    command({
      name: 'remove',
      about: 'refuse the key from these places, and remove them from the list',
      args: [places],
      options: { ...placeOptions, ifExists: flag('--if-exists', 'ignore places that are not on the list') },
      examples: ['rankd whitelist remove 920587237', 'rankd whitelist remove --file - < places.txt'],
      run: (cli, ids, { ifExists, ...options }) =>
        change(cli, { ...options, ids, outcome: 'removed' }, (ports, asked) =>
          removePlaces(ports, { ...asked, ifExists }),
        ),
    }),
    command({
      name: 'enable',
      about: 'accept the key from these places again',
      args: [places],
      options: placeOptions,
      examples: ['rankd whitelist enable 920587237'],
      run: (cli, ids, options) =>
        change(cli, { ...options, ids, outcome: 'enabled' }, (ports, asked) =>
          setPlacesActive(ports, { ...asked, active: true }),
        ),
    }),
    command({
      name: 'disable',
      about: 'refuse the key from these places, but keep them on the list',
      args: [places],
      options: placeOptions,
      examples: ['rankd whitelist disable 920587237 --key my-game'],
      run: (cli, ids, options) =>
        change(cli, { ...options, ids, outcome: 'disabled' }, (ports, asked) =>
          setPlacesActive(ports, { ...asked, active: false }),
        ),
    }),
    command({
      name: 'check',
      about: 'report whether the key may be used from a place; exits with 5 if the answer is no',
      args: [argument('<place>', 'place or universe id', asPlaceId)],
      options: { key },
      examples: ['rankd whitelist check 920587237', 'rankd whitelist check 920587237 --key my-game'],
      run: check,
    }),
  ],
});

interface RequestedPlaces {
  key?: string;
  file?: string;
}

async function add(
  cli: Cli,
  given: number[],
  { key, file, note, experience }: RequestedPlaces & { note?: string; experience?: number },
): Promise<void> {
  const ids = experience === undefined ? given : [...given, ...(await idsOf(cli, experience))];
  const placeIds = await readIds(cli.io, { ids, file });
  const { entries, ...done } = await cli.withWrites((ports) => addPlaces(ports, { key, placeIds, note, by: cli.by }));
  printOutcomes(cli, done.key, entries);
  if (shownState(done.key, systemClock.now()) === 'expired')
    return cli.say(`Key "${done.key.name}" has expired, so no game can use it.\ntry: rankd key create NAME`);
  cli.say(
    `Games can now use the key "${done.key.name}" from there.\nThey send game.PlaceId; if your script sends game.GameId, add that id.`,
  );
}

async function idsOf(cli: Cli, universeId: number): Promise<number[]> {
  const places = await cli.withRanking(({ platform }, call) => placesOf({ platform }, universeId, call));
  const named = places.map(({ id, name }) => `${name} (${id})`).join(', ');
  cli.sayResolved(`Experience ${universeId} has ${counted(places.length, 'place')}: ${named}.`, { universeId, places });
  return places.map(({ id }) => id);
}

async function list(cli: Cli, { key }: { key?: string }): Promise<void> {
  const listed = await cli.withStore((ports) => listPlaces(ports, { key }));
  const documents = listed.map(({ key, entry }) => entryDocument(key, entry));
  const rows = documents.map(({ placeId, keyName, active, addedAt, declaredIn, note }) => [
    String(placeId),
    keyName,
    active ? 'yes' : 'no',
    when(Date.parse(addedAt)),
    declaredIn ?? '-',
    note,
  ]);
  cli.print({ entries: documents }, table(['place', 'key', 'active', 'added', 'declared in', 'note'], rows));
  if (documents.length > 0) return;
  cli.say(
    key === undefined
      ? 'No place is whitelisted.\ntry: rankd whitelist add PLACE'
      : 'No place is whitelisted for this key.',
  );
}

async function change(
  cli: Cli,
  { ids, key, file, outcome }: RequestedPlaces & { ids: number[]; outcome: string },
  work: (ports: Pick<Ports, 'store' | 'clock'>, asked: PlacesCommand) => Promise<ChangedPlaces>,
): Promise<void> {
  const placeIds = await readIds(cli.io, { ids, file });
  const { entries, ...done } = await cli.withWrites((ports) => work(ports, { key, placeIds, by: cli.by }));
  const outcomes = entries.map((entry) => ({ ...entry, outcome }));
  printOutcomes(cli, done.key, outcomes);
}

async function check(cli: Cli, placeId: number, options: { key?: string }): Promise<void> {
  const verdict = await cli.withStore((ports) => checkPlace(ports, { key: options.key, placeId }));
  const { key, entry, refusal } = verdict;
  cli.print(placeVerdictDocument(verdict), refusal === undefined ? 'yes' : 'no');
  if (refusal === undefined) return;
  const what = entry === undefined ? 'not on the whitelist of' : 'disabled for';
  cli.say(
    refusal.code === 'place_not_whitelisted' || refusal.details === undefined
      ? `Place ${placeId} is ${what} key "${key.name}".`
      : `Games can't use the key "${key.name}": ${describeRefusal(refusal.details)}.`,
  );
  cli.say(`try: ${refusal.hint}`);
  throw new ExitCode(5);
}

function printOutcomes(cli: Cli, key: Key, entries: Array<WhitelistEntry & { outcome: string }>): void {
  const documents = entries.map((entry) => changedEntryDocument(key, entry));
  cli.print({ entries: documents }, documents.map(({ placeId, outcome }) => `Place ${placeId}: ${outcome}`).join('\n'));
}
