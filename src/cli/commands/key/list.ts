import type { Command } from 'commander';
import { systemClock } from '../../../base/clock.ts';
import { locateConfig } from '../../../config/locate.ts';
import type { Key } from '../../../core/model.ts';
import { keyDocument, shownState } from '../../../usecases/documents/key.ts';
import { listKeys } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { wholeNumber } from '../../input/arguments.ts';
import { examples } from '../../output/help.ts';
import { ago, type Cell, table, when } from '../../output/table.ts';
import { describeRules } from './rule-options.ts';

export function listCommand(key: Command, cli: Cli): void {
  key
    .command('list')
    .description('every key with its state and, while it is rotated, who still uses the old secret')
    .option('--limit <n>', 'at most this many', wholeNumber(1, 1_000_000), 100)
    .option('--after <key>', 'only those made after this key (id or name)')
    .addHelpText(
      'after',
      examples('rankd key list', 'rankd key list --json', 'rankd key list --after my-game --limit 500'),
    )
    .action((options: { limit: number; after?: string }) => list(cli, options));
}

const headings = [
  'name',
  'state',
  'rules',
  'last used',
  'from place',
  'accepted until',
  'mode',
  'scopes',
  'key',
  'declared in',
  'id',
];

async function list(cli: Cli, options: { limit: number; after?: string }): Promise<void> {
  const { keys, next = null } = await cli.withStore((ports) => listKeys(ports, options));
  const now = systemClock.now();
  const rows = keys.flatMap((key) => rowsOf(key, now));
  cli.print({ keys: keys.map((key) => keyDocument(key, now)), next }, table(headings, rows));
  if (next !== null) cli.say(`There are more: rankd key list --after ${next}`);
  if (keys.length === 0) cli.say(options.after === undefined ? await noKeys(cli) : 'There is no newer key.');
}

/** Keys that the configuration declares are there once a daemon has read it. */
async function noKeys(cli: Cli): Promise<string> {
  const config = locateConfig(cli.configSources) && (await cli.loadConfig().catch(() => undefined));
  const declared = config?.config.keys.map(({ name }) => name) ?? [];
  return declared.length === 0
    ? 'There is no key yet.\ntry: rankd key create NAME'
    : `There is no key yet. The configuration declares ${declared.join(', ')}, which the daemon takes up when it starts.\ntry: rankd serve`;
}

/** A row for each secret that is accepted; the first row also has what belongs to the key itself. */
function rowsOf(key: Key, now: number): Cell[][] {
  const { name, id, mode, scopes, secrets, declaredIn = '-' } = key;
  const state = `${shownState(key, now)}${key.isSimulated ? ' (simulated)' : ''}`;
  const first = { state, rules: describeRules(key), mode, scopes: scopes.join(',') };
  const other = { state: '', rules: '', mode: '', scopes: '' };
  if (secrets.length === 0) {
    return [[name, state, first.rules, '', '', '', mode, first.scopes, '', declaredIn, id]];
  }
  return secrets.map(({ masked, expiresAt, lastUsedAt, lastPlaceId = '-' }, index) => {
    const { state, rules, mode, scopes } = index === 0 ? first : other;
    const until = when(earlier(expiresAt, key.expiresAt));
    return [name, state, rules, ago(lastUsedAt), String(lastPlaceId), until, mode, scopes, masked, declaredIn, id];
  });
}

function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}
