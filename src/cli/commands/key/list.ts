import type { Command } from 'commander';
import type { Cli } from '../../cli.ts';
import { examples } from '../../help.ts';
import { table } from '../../table.ts';
import { keyDocument, stateOf } from './key-document.ts';

export function listCommand(key: Command, cli: Cli): void {
  key
    .command('list')
    .description('every key with its state')
    .addHelpText('after', examples('rankd key list', 'rankd key list --json'))
    .action(() => list(cli));
}

async function list(cli: Cli): Promise<void> {
  const keys = await cli.withStore((store) => store.listKeys());
  const rows = keys.map((key) => [
    key.name,
    key.id,
    stateOf(key),
    key.mode,
    key.scopes.join(','),
    String(key.maxRank ?? '-'),
    key.secrets[0]?.masked ?? '',
  ]);
  cli.print({ keys: keys.map(keyDocument) }, table(['name', 'id', 'state', 'mode', 'scopes', 'max rank', 'key'], rows));
  if (keys.length === 0) cli.say('There is no key yet.\ntry: rankd key create NAME');
}
