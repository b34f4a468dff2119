import type { Command } from 'commander';
import { requireKey } from '../../../usecases/keys.ts';
import type { Cli } from '../../cli.ts';
import { examples } from '../../help.ts';
import { table } from '../../table.ts';
import { isoOrNull } from '../../time.ts';
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
    const secrets = key.secrets.map(({ masked, expiresAt }) => [
      'secret',
      masked + (expiresAt === undefined ? '' : ` until ${isoOrNull(expiresAt)}`),
    ]);
    const places = entries.map(({ placeId, active }) => ['place', `${placeId}${active ? '' : ' (disabled)'}`]);
    const rows = [...facts.map(([name, value]) => [name, String(value)]), ...secrets, ...places];
    const whitelist = entries.map(({ placeId, active, note }) => ({ placeId, active, note }));
    cli.print({ key: { ...document, whitelist } }, table(['field', 'value'], rows));
  });
}
