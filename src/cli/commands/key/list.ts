import type { Command } from 'commander';
import type { Key } from '../../../core/model.ts';
import type { Cli } from '../../cli.ts';
import { examples } from '../../help.ts';
import { table } from '../../table.ts';
import { isoOrNull } from '../../time.ts';
import { keyDocument, stateOf } from './key-document.ts';
import { describeRules } from './rule-options.ts';

export function listCommand(key: Command, cli: Cli): void {
  key
    .command('list')
    .description('every key with its state; while it is rotated, who still uses the old secret')
    .addHelpText('after', examples('rankd key list', 'rankd key list --json'))
    .action(() => list(cli));
}

const headings = [
  'name',
  'id',
  'state',
  'mode',
  'scopes',
  'rules',
  'key',
  'accepted until',
  'last used',
  'from place',
  'declared in',
];

async function list(cli: Cli): Promise<void> {
  const keys = await cli.withStore((store) => store.listKeys());
  cli.print({ keys: keys.map(keyDocument) }, table(headings, keys.flatMap(rowsOf)));
  if (keys.length === 0) cli.say('There is no key yet.\ntry: rankd key create NAME');
}

/** A row for each secret that is accepted; what is the key's own stands in the first. */
function rowsOf(key: Key): string[][] {
  const { name, id, mode, scopes, secrets, declaredIn = '-' } = key;
  const own = [name, id, stateOf(key), mode, scopes.join(','), describeRules(key)];
  if (secrets.length === 0) return [[...own, '', '', '', '', declaredIn]];
  return secrets.map(({ masked, expiresAt, lastUsedAt, lastPlaceId = '-' }, index) => [
    ...(index === 0 ? own : [name, id, ...own.slice(2).map(() => '')]),
    masked,
    isoOrNull(earlier(expiresAt, key.expiresAt)) ?? '-',
    isoOrNull(lastUsedAt) ?? '-',
    String(lastPlaceId),
    declaredIn,
  ]);
}

function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}
