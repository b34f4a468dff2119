import type { Command } from 'commander';
import { systemClock } from '../../../base/clock.ts';
import { isoTime } from '../../../base/time.ts';
import type { KeySecret, WhitelistEntry } from '../../../core/model.ts';
import { keyWithPlacesDocument } from '../../../usecases/documents/key.ts';
import { showKey } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { keyArgument } from '../../input/arguments.ts';
import { examples } from '../../output/help.ts';
import { table } from '../../output/table.ts';

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
    ...known.map(([name, value]) => [name, String(value)]),
    ...found.key.secrets.map((secret) => ['secret', describeSecret(secret)]),
    ...found.entries.map((entry) => ['place', describePlace(entry)]),
  ];
  cli.print({ key: document }, table(['field', 'value'], rows));
}

/** e.g. `rk_live_3kf…Zp9, replaced, accepted until 2026-01-02T00:00:00.000Z, last used 2026-01-01T00:00:00.000Z from place 1` */
function describeSecret({ masked, expiresAt, lastUsedAt, lastPlaceId }: KeySecret): string {
  const end = expiresAt === undefined ? [] : [`replaced, accepted until ${isoTime(expiresAt)}`];
  const use = lastUsedAt === undefined ? 'not used yet' : `last used ${isoTime(lastUsedAt)} from place ${lastPlaceId}`;
  return [masked, ...end, use].join(', ');
}

function describePlace({ placeId, active, declaredIn }: WhitelistEntry): string {
  return `${placeId}${active ? '' : ' (disabled)'}${declaredIn === undefined ? '' : ` (declared in ${declaredIn})`}`;
}
