import { systemClock } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import { isoTime } from '../../base/time.ts';
import { locateConfig } from '../../config/locate.ts';
import { type Key, type KeySecret, scopes, usualScopes, type WhitelistEntry } from '../../core/model.ts';
import { existingKey } from '../../usecases/keys/existing-key.ts';
import { keyDocument, keyWithPlacesDocument, shownState } from '../../usecases/keys/key-document.ts';
import {
  adoptKey,
  createDiscordKey,
  createKey,
  type KeyRequest,
  listKeys,
  pauseKey,
  resumeKey,
  revokeKey,
  rotateKey,
  setKeyRules,
  showKey,
} from '../../usecases/keys/keys.ts';
import type { Cli } from '../cli.ts';
import { argument, choices, command, commandGroup, flag, option, type ValuesOf } from '../command.ts';
import { duration, keyName, lifetime, wholeNumber } from '../input/arguments.ts';
import { confirm } from '../input/confirm.ts';
import { ago, type Cell, card, cellOf, table, timeText, when } from '../output/table.ts';
import { describeRules, ruleOptions, rulesIn } from './key-rules.ts';
import { hashCommand, out, printMinted, saveTo, verifyCommand } from './key-secrets.ts';

const key = argument('<key>', 'id or name of the key');

const createOptions = {
  test: flag('--test', 'a test key, which runs every check and changes nothing'),
  expires: option('--expires <duration>', 'the key expires after this time, e.g. 90d', lifetime),
  scope: choices('--scope <scope...>', 'what the key may do', scopes, [...usualScopes]),
  ifNotExists: flag('--if-not-exists', 'if a key with this name exists, do not change it and report how it differs'),
  forDiscord: flag('--for-discord', 'a key without a secret, for Discord members with a certain role').conflicts([
    ...['out', 'system', 'anyPlace'],
  ]),
  out,
  ...ruleOptions,
};

export const keyCommands = commandGroup({
  name: 'key',
  about: 'game keys, which game servers send to rankd',
  examples: ['rankd key create my-game'],
  commands: [
    command({
      name: 'create',
      about: 'create a key; its secret is shown only once (a key for Discord has none)',
      args: [argument('<name>', 'name of the key', keyName)],
      options: createOptions,
      examples: [
        'rankd key create my-game',
        'rankd key create quiz --max-rank 50 --expires 90d',
        'rankd key create tryouts --direction promote --self-rank deny --rate 60',
        'rankd key create trial --test --out trial.key',
        'rankd key create web-shop --any-place --direction promote --max-rank 20',
        'rankd key create trainers --for-discord --direction promote --max-rank 20',
      ],
      run: create,
    }),
    command({
      name: 'list',
      about: 'all keys with their state and, during a rotation, the last use of the old secret',
      options: {
        limit: option('--limit <n>', 'at most this many', wholeNumber(1, 1_000_000), 100),
        after: option('--after <key>', 'only keys created after this one (id or name)'),
      },
      examples: ['rankd key list', 'rankd key list --json', 'rankd key list --after my-game --limit 500'],
      run: list,
    }),
    command({
      name: 'show',
      about: 'one key with its whitelist',
      args: [key],
      examples: ['rankd key show my-game'],
      run: show,
    }),
    command({
      name: 'set',
      about: 'change what a key may do; its secret stays as it is',
      args: [key],
      options: ruleOptions,
      examples: ['rankd key set my-game --max-rank 50 --direction promote', 'rankd key set my-game --max-rank none'],
      run: set,
    }),
    command({
      name: 'rotate',
      about: 'create a new secret; the old one keeps working until the overlap ends',
      args: [key],
      options: {
        overlap: option('--overlap <duration>', 'how long the old secret keeps working (default: 24h)', duration),
        out,
      },
      examples: ['rankd key rotate my-game', 'rankd key rotate my-game --overlap 0s'],
      run: rotate,
    }),
    command({
      name: 'revoke',
      about: 'permanently refuse the key, from the next request on',
      args: [key],
      examples: ['rankd key revoke my-game', 'rankd key revoke my-game -y'],
      run: async (cli, idOrName) => {
        const agreed = ({ name }: Key) => confirm(cli, `Permanently revoke key "${name}"?`);
        const { key, wasRevoked } = await cli.withWrites((ports) => revokeKey(ports, named(cli, idOrName), agreed));
        printKey(cli, key, wasRevoked ? 'was already revoked' : 'is revoked');
      },
    }),
    command({
      name: 'pause',
      about: 'stop the key from changing ranks from the next request on, until you resume it',
      args: [key],
      examples: ['rankd key pause my-game'],
      run: async (cli, idOrName) => {
        const { key, wasPaused } = await cli.withWrites((ports) => pauseKey(ports, named(cli, idOrName)));
        printKey(cli, key, wasPaused ? 'was already paused' : 'is paused');
        cli.say(`It can't change any rank until you run: rankd key resume ${key.name}`);
      },
    }),
    command({
      name: 'resume',
      about: 'let a paused key change ranks again, whether you or the circuit breaker paused it',
      args: [key],
      examples: ['rankd history list --key my-game', 'rankd key resume my-game'],
      run: async (cli, idOrName) => {
        const { key, wasPaused } = await cli.withWrites((ports) => resumeKey(ports, named(cli, idOrName)));
        printKey(cli, key, wasPaused ? resumed(key) : 'was not paused');
      },
    }),
    command({
      name: 'adopt',
      about: 'let a key that was created on the simulated group work on the real group too',
      args: [key],
      examples: ['rankd key adopt my-game'],
      run: async (cli, idOrName) => {
        const { key, wasSimulated } = await cli.withWrites((ports) => adoptKey(ports, named(cli, idOrName)));
        printKey(cli, key, wasSimulated ? 'works on the real group too' : 'was not limited to the simulated group');
      },
    }),
    verifyCommand,
    hashCommand,
  ],
});

/** Describes a resumed key, which may have expired or been revoked while it was paused. */
function resumed(key: Key): string {
  const state = shownState(key, systemClock.now());
  return state === 'expired' || state === 'revoked' ? `is no longer paused, but it is ${state}` : `is ${state} again`;
}

function named({ by }: Cli, key: string): { key: string; by: string } {
  return { key, by };
}

function printKey(cli: Cli, key: Key, outcome: string): void {
  cli.print({ key: keyDocument(key, systemClock.now()) }, `Key "${key.name}" ${outcome}.`);
}

async function create(cli: Cli, name: string, options: ValuesOf<typeof createOptions>): Promise<void> {
  const { test, expires, scope, ifNotExists, forDiscord, out, ...given } = options;
  const rules = { ...(await rulesIn(cli, given)), ...(forDiscord && { isForDiscord: true }) };
  await cli.withWrites(async (ports, isSimulated) => {
    const request: KeyRequest = {
      name,
      mode: test ? 'test' : 'live',
      scopes: [...new Set(scope)],
      rules,
      ...(expires !== undefined && { expiresAt: ports.clock.now() + expires }),
    };
    const existing = ifNotExists ? await existingKey(ports, request) : undefined;
    if (existing !== undefined) return printExisting(cli, existing);
    const made = { ...request, ...((await isSimulated()) && { isSimulated: true }) };
    const { by } = cli;
    if (forDiscord) printForDiscord(cli, await createDiscordKey(ports, { ...made, by }));
    else await printMinted(cli, await createKey(ports, { ...made, by }, saveTo(cli, out)), out, { created: true });
    if (made.isSimulated)
      cli.say(
        `It works only on the simulated group, which rankd uses here. To let it work on a real group: rankd key adopt ${name}`,
      );
    if (!rules.isAnyPlace && !forDiscord) cli.say(`try: rankd whitelist add PLACE --key ${name}`);
  });
}

function printForDiscord(cli: Cli, key: Key): void {
  cli.printName({ created: true, key: keyDocument(key, systemClock.now()) }, key.id);
  cli.say(
    `Key "${key.name}" (${key.id}) is for Discord. It has no secret; discord.commands in rankd.yaml assigns it to a role.`,
  );
}

function printExisting(cli: Cli, { key, differs }: { key: Key; differs: string[] }): void {
  cli.print({ created: false, key: keyDocument(key, systemClock.now()), differs }, key.id);
  cli.say(`Key "${key.name}" already exists; its secret can't be shown again.`);
  if (differs.length > 0) cli.say(`warning: it differs from your request: ${differs.join('; ')}`);
}

async function set(cli: Cli, idOrName: string, options: ValuesOf<typeof ruleOptions>): Promise<void> {
  const rules = await rulesIn(cli, options);
  if (Object.keys(rules).length === 0)
    throw new RankdError('usage', 'Give at least one setting to change.', { hint: 'rankd key set --help' });
  const key = await cli.withWrites((ports) => setKeyRules(ports, { ...named(cli, idOrName), rules }));
  const own = describeRules(key);
  const text = `Key "${key.name}": ${own === '-' ? 'no extra rules' : own}`;
  cli.print({ key: keyDocument(key, systemClock.now()) }, text);
}

export const usualOverlapMs = 24 * 3_600_000;

async function rotate(
  cli: Cli,
  idOrName: string,
  { overlap: overlapMs = usualOverlapMs, out }: { overlap?: number; out?: string },
): Promise<void> {
  await cli.withWrites(async (ports) => {
    const minted = await rotateKey(ports, { ...named(cli, idOrName), overlapMs }, saveTo(cli, out));
    await printMinted(cli, minted, out, {});
    cli.say(
      overlapMs === 0
        ? 'The old secret no longer works.'
        : `The old secret works until ${isoTime(minted.oldExpiresAt)}. Before then, ${replacement(minted.key)}.`,
    );
  });
}

/** Running game servers send the old secret until they restart. */
function replacement({ isAnyPlace }: Key): string {
  return isAnyPlace
    ? 'give the new one to the program that uses this key'
    : "put the new one into your experience's secret on the Creator Dashboard, then restart all running game servers there (Restart servers)";
}

async function list(cli: Cli, options: { limit: number; after?: string }): Promise<void> {
  const { keys, next = null } = await cli.withStore((ports) => listKeys(ports, options));
  const now = systemClock.now();
  const rows = keys.flatMap((key) => rowsOf(key, now));
  cli.print({ keys: keys.map((key) => keyDocument(key, now)), next }, table(headings, rows));
  if (next !== null) cli.say(`There are more keys: rankd key list --after ${next}`);
  if (keys.length === 0) cli.say(options.after === undefined ? await noKeys(cli) : 'There are no newer keys.');
}

/**
 * Explains the empty list, and names the keys that the configuration declares, because the daemon creates them when it
 * starts.
 */
async function noKeys(cli: Cli): Promise<string> {
  const config = locateConfig(cli.configSources) && (await cli.loadConfig().catch(() => undefined));
  const declared = config?.config.keys.map(({ name }) => name) ?? [];
  return declared.length === 0
    ? 'There is no key yet.\ntry: rankd key create NAME'
    : `There is no key yet. The configuration declares ${declared.join(', ')}, which the daemon creates when it starts.\ntry: rankd serve`;
}

const headings = [
  ...['name', 'state', 'rules', 'last used', 'from place', 'accepted until'],
  ...['mode', 'scopes', 'key', 'declared in', 'id'],
];

/** Returns a row for each accepted secret, or one row if there is none; the first row also describes the key. */
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

/**
 * Formats a secret, e.g. `rk_live_3kf…Zp9, replaced, accepted until 2026-01-02T00:00:00.000Z, last used
 * 2026-01-01T00:00:00.000Z from place 1`.
 */
function describeSecret({ masked, expiresAt, lastUsedAt, lastPlaceId }: KeySecret): Cell {
  return (screen) => {
    const end = expiresAt === undefined ? [] : [`replaced, accepted until ${timeText(expiresAt, screen)}`];
    const use =
      lastUsedAt === undefined
        ? 'no use recorded yet (a daemon records uses once a minute)'
        : `last used ${timeText(lastUsedAt, screen)}${lastPlaceId === undefined ? '' : ` from place ${lastPlaceId}`}`;
    return [masked, ...end, use].join(', ');
  };
}

function describePlace({ placeId, active, declaredIn }: WhitelistEntry): string {
  return `${placeId}${active ? '' : ' (disabled)'}${declaredIn === undefined ? '' : ` (declared in ${declaredIn})`}`;
}
