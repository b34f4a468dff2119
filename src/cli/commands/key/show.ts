import type { Command } from 'commander';
import { systemClock } from '../../../base/clock.ts';
import type { KeySecret, WhitelistEntry } from '../../../core/model.ts';
import { keyWithPlacesDocument } from '../../../usecases/documents/key.ts';
import { showKey } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { keyArgument } from '../../input/arguments.ts';
import { examples } from '../../output/help.ts';
import { type Cell, card, cellOf, timeText } from '../../output/table.ts';

export function showCommand(key: Command, cli: Cli): void {
  key
    .command('show')
    .description('one key with its whitelist')
    .argument(...keyArgument)
    .addHelpText('after', examples('rankd key show my-game'))
    .action((idOrName: string) => show(cli, idOrName));
}

async function show(cli: Cli, idOrName: string): Promise<void> {
  const found = await cli.withStore((ports) => showKey(ports, idOrName));
  const document = keyWithPlacesDocument(found, systemClock.now());
  const { secrets: _secrets, whitelist: _places, ...own } = document;
  const known = Object.entries(own).filter(([, value]) => value !== null);
  const rows = [
    ...known.map(([name, value]): [string, Cell] => [name, cellOf(value)]),
    ...found.key.secrets.map((secret): [string, Cell] => ['secret', describeSecret(secret)]),
    ...found.entries.map((entry): [string, Cell] => ['place', describePlace(entry)]),
  ];
  cli.print({ key: document }, card(rows));
}

/** e.g. `rk_live_3kf…Zp9, replaced, accepted until 2026-01-02T00:00:00.000Z, last used 2026-01-01T00:00:00.000Z from place 1` */
function describeSecret({ masked, expiresAt, lastUsedAt, lastPlaceId }: KeySecret): Cell {
  return (screen) => {
    const end = expiresAt === undefined ? [] : [`replaced, accepted until ${timeText(expiresAt, screen)}`];
    const use =
      lastUsedAt === undefined
        ? 'no use recorded yet (a daemon records uses once a minute)'
        : `last used ${timeText(lastUsedAt, screen)} from place ${lastPlaceId}`;
    return [masked, ...end, use].join(', ');
  };
}

function describePlace({ placeId, active, declaredIn }: WhitelistEntry): string {
  return `${placeId}${active ? '' : ' (disabled)'}${declaredIn === undefined ? '' : ` (declared in ${declaredIn})`}`;
}
