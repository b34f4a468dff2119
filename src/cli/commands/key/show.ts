import type { Command } from 'commander';
import type { KeySecret, WhitelistEntry } from '../../../core/model.ts';
import { requireKey } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { examples } from '../../output/help.ts';
import { table } from '../../output/table.ts';
import { isoOrNull } from '../../output/time.ts';
import { keyArgument } from './key-argument.ts';
import { keyDocument } from './key-document.ts';

export function showCommand(key: Command, cli: Cli): void {
  key
    .command('show')
    .description('one key with its whitelist')
    .argument(...keyArgument)
    .addHelpText('after', examples('rankd key show my-game'))
    .action((idOrName: string) => show(cli, idOrName));
}

async function show(cli: Cli, idOrName: string): Promise<void> {
  await cli.withStore(async (store) => {
    const key = await requireKey(store, idOrName);
    const entries = await store.listEntries({ keyId: key.id });
    const document = keyDocument(key);
    const facts = Object.entries(document).filter(([name, value]) => name !== 'secrets' && value !== null);
    const secrets = key.secrets.map((secret) => ['secret', describeSecret(secret)]);
    const places = entries.map((entry) => ['place', describePlace(entry)]);
    const rows = [...facts.map(([name, value]) => [name, String(value)]), ...secrets, ...places];
    const whitelist = entries.map(({ placeId, active, note, declaredIn = null }) => ({
      placeId,
      active,
      note,
      declaredIn,
    }));
    cli.print({ key: { ...document, whitelist } }, table(['field', 'value'], rows));
  });
}

/** e.g. `rk_live_3kf…Zp9, replaced, accepted until 2026-01-02T00:00:00.000Z, last used 2026-01-01T00:00:00.000Z from place 1` */
function describeSecret({ masked, expiresAt, lastUsedAt, lastPlaceId }: KeySecret): string {
  const end = expiresAt === undefined ? [] : [`replaced, accepted until ${isoOrNull(expiresAt)}`];
  const use =
    lastUsedAt === undefined ? 'not used yet' : `last used ${isoOrNull(lastUsedAt)} from place ${lastPlaceId}`;
  return [masked, ...end, use].join(', ');
}

function describePlace({ placeId, active, declaredIn }: WhitelistEntry): string {
  return `${placeId}${active ? '' : ' (disabled)'}${declaredIn === undefined ? '' : ` (declared in ${declaredIn})`}`;
}
