import { rmSync, writeFileSync } from 'node:fs';
import { Argument, type Command, Option } from 'commander';
import { systemClock } from '../../clock.ts';
import { accessChecks, keyState } from '../../core/access.ts';
import { hashKey, keyMode } from '../../core/api-key.ts';
import { type Key, type Scope, scopes } from '../../core/model.ts';
import { RankdError } from '../../errors.ts';
import { createKey, type KeyOrder, type MintedKey, requireKey, rotateKey } from '../../usecases/keys.ts';
import { anyId, duration, keyName, wholeNumber } from '../arguments.ts';
import type { Cli } from '../cli.ts';
import { confirm } from '../confirm.ts';
import { ExitCode } from '../exit-code.ts';
import { examples } from '../help.ts';
import { table } from '../table.ts';
import { isoOrNull } from '../time.ts';

interface CreateOptions {
  test?: boolean;
  expires?: number;
  maxRank?: number;
  scope: Scope[];
  ifNotExists?: boolean;
  out?: string;
}

const keyArgument = () => new Argument('<key>', 'id or name of the key');

export function keyCommands(program: Command, cli: Cli): void {
  const key = program
    .command('key')
    .description('API keys for game servers')
    .addHelpText('after', examples('rankd key create my-game'));
  key
    .command('create')
    .description('make a key; its secret is shown this once')
    .argument('<name>', 'name of the key', keyName)
    .option('--test', 'a key that runs every check and changes nothing')
    .option('--expires <duration>', 'not accepted after this time, e.g. 90d', duration)
    .option('--max-rank <rank>', 'never above this rank with this key', wholeNumber(1, 254))
    .addOption(new Option('--scope <scope...>', 'what the key may do').choices(scopes).default([...scopes]))
    .option('--if-not-exists', 'leave a key of this name as it is')
    .option('--out <file>', 'write the secret to a new file that only you can read, instead of printing it')
    .addHelpText(
      'after',
      examples(
        'rankd key create my-game',
        'rankd key create quiz --max-rank 50 --expires 90d',
        'rankd key create trial --test --out trial.key',
      ),
    )
    .action((name: string, options: CreateOptions) => create(cli, name, options));
  key
    .command('list')
    .description('every key with its state')
    .addHelpText('after', examples('rankd key list', 'rankd key list --json'))
    .action(() => list(cli));
  key
    .command('show')
    .description('one key with its whitelist')
    .addArgument(keyArgument())
    .addHelpText('after', examples('rankd key show my-game'))
    .action((idOrName: string) => show(cli, idOrName));
  key
    .command('rotate')
    .description('make a new secret; the old one works on until the overlap ends')
    .addArgument(keyArgument())
    .option('--overlap <duration>', 'how long the old secret works on', duration, 24 * 3_600_000)
    .option('--out <file>', 'write the secret to a new file that only you can read, instead of printing it')
    .addHelpText('after', examples('rankd key rotate my-game', 'rankd key rotate my-game --overlap 0s'))
    .action((idOrName: string, options: { overlap: number; out?: string }) => rotate(cli, idOrName, options));
  key
    .command('revoke')
    .description('refuse the key from the next request on, for good')
    .addArgument(keyArgument())
    .addHelpText('after', examples('rankd key revoke my-game', 'rankd key revoke my-game -y'))
    .action((idOrName: string) => revoke(cli, idOrName));
  key
    .command('resume')
    .description('lift the pause of a key that demoted many members in a short time')
    .addArgument(keyArgument())
    .addHelpText('after', examples('rankd history list --key my-game', 'rankd key resume my-game'))
    .action((idOrName: string) => resume(cli, idOrName));
  key
    .command('verify')
    .description('tell whether a key read from standard input is accepted')
    .addArgument(
      new Argument('<->', 'a dash: the key comes from standard input, so that no history keeps it').choices(['-']),
    )
    .option('--place <id>', 'also check the whitelist for this place', anyId)
    .addHelpText(
      'after',
      examples('rankd key verify - < my-game.key', 'rankd key verify - --place 920587237 < my-game.key'),
    )
    .action((_dash: string, options: { place?: number }) => verify(cli, options));
}

async function create(
  cli: Cli,
  name: string,
  { test, expires, maxRank, scope, ifNotExists, out }: CreateOptions,
): Promise<void> {
  await cli.withStore(async (store) => {
    const existing = ifNotExists ? await store.findKey(name) : undefined;
    if (existing !== undefined && existing.revokedAt === undefined) {
      cli.say(`Key "${name}" exists already; its secret can't be shown again.`);
      return cli.print({ created: false, key: keyDocument(existing) }, existing.id);
    }
    const order: KeyOrder = {
      name,
      mode: test ? 'test' : 'live',
      scopes: [...new Set(scope)],
      ...(maxRank !== undefined && { maxRank }),
      ...(expires !== undefined && { expiresAt: systemClock.now() + expires }),
    };
    const minted = await handOut(out, () => createKey(store, order, cli.by));
    printMinted(cli, minted, out, { created: true });
    cli.say(`try: rankd whitelist add PLACE --key ${name}`);
  });
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

async function rotate(cli: Cli, idOrName: string, { overlap, out }: { overlap: number; out?: string }): Promise<void> {
  await cli.withStore(async (store) => {
    const key = await requireKey(store, idOrName);
    const state = keyState(key, systemClock.now());
    if (state === 'revoked' || state === 'expired') {
      throw new RankdError('conflict', `Key "${key.name}" is ${state}; a new secret would not be accepted.`, {
        hint: 'rankd key create NAME',
      });
    }
    const oldExpiresAt = systemClock.now() + overlap;
    const minted = await handOut(out, () => rotateKey(store, { key, oldExpiresAt }, cli.by));
    printMinted(cli, minted, out, {});
    cli.say(
      overlap === 0
        ? 'The old secret is refused from now on.'
        : `The old secret works until ${isoOrNull(oldExpiresAt)}.`,
    );
  });
}

async function revoke(cli: Cli, idOrName: string): Promise<void> {
  await cli.withStore(async (store) => {
    const key = await requireKey(store, idOrName);
    await confirm(cli, `Revoke key "${key.name}" for good?`);
    const revoked = await store.revokeKey(key.id, cli.by);
    cli.print({ key: keyDocument(revoked) }, `Key "${key.name}" is revoked.`);
  });
}

async function resume(cli: Cli, idOrName: string): Promise<void> {
  await cli.withStore(async (store) => {
    const key = await requireKey(store, idOrName);
    const resumed = await store.pauseKey({ keyId: key.id, paused: false, reason: 'by the operator' }, cli.by);
    cli.print({ key: keyDocument(resumed) }, `Key "${key.name}" is ${stateOf(resumed)} again.`);
  });
}

async function verify(cli: Cli, { place }: { place?: number }): Promise<void> {
  const secret = (await cli.io.readStdin()).trim();
  await cli.withStore(async (store) => {
    const presented = keyMode(secret) && (await store.findPresented({ hash: hashKey(secret), placeId: place ?? 0 }));
    const question = { now: systemClock.now(), placeId: place ?? 0 };
    const refusals = presented
      ? accessChecks
          .filter(({ name }) => name !== 'scope' && (name !== 'whitelist' || place !== undefined))
          .flatMap((check) => check.refusal(presented, { ...question, scope: 'rank' }) ?? [])
      : [];
    const reason = presented
      ? refusals.map(({ code, internal, message }) => (code === 'invalid_key' ? internal : message))[0]
      : keyMode(secret)
        ? 'no such key'
        : 'not an API key, or mistyped';
    const document = {
      accepted: reason === undefined,
      reason: reason ?? null,
      key: presented ? keyDocument(presented.key) : null,
    };
    cli.print(document, reason === undefined ? `yes: key "${presented?.key.name}"` : `no: ${reason}`);
    if (reason !== undefined) throw new ExitCode(5);
  });
}

/** Makes the file before the key: a secret that can't be handed out must not come into being. */
async function handOut(out: string | undefined, mint: () => Promise<MintedKey>): Promise<MintedKey> {
  if (out === undefined) return mint();
  try {
    writeFileSync(out, '', { flag: 'wx', mode: 0o600 });
  } catch (cause) {
    const exists = (cause as NodeJS.ErrnoException).code === 'EEXIST';
    const what = exists ? `${out} exists already and is not overwritten.` : `${out} can't be written.`;
    throw new RankdError(exists ? 'already_exists' : 'no_permission', what, {
      cause,
      hint: 'choose another file for --out',
    });
  }
  try {
    const minted = await mint();
    writeFileSync(out, `${minted.secret}\n`);
    return minted;
  } catch (error) {
    rmSync(out);
    throw error;
  }
}

function printMinted(
  cli: Cli,
  { key, secret }: MintedKey,
  out: string | undefined,
  extra: Record<string, unknown>,
): void {
  if (out === undefined) {
    cli.print({ ...extra, key: keyDocument(key), secret }, secret);
    cli.say(`Key "${key.name}" (${key.id}). Keep the secret now: it is not shown again.`);
  } else {
    cli.print({ ...extra, key: keyDocument(key), out }, out);
    cli.say(`Key "${key.name}" (${key.id}); its secret is in ${out}.`);
  }
}

function stateOf(key: Key): string {
  const state = keyState(key, systemClock.now());
  return key.pausedAt !== undefined && state !== 'revoked' && state !== 'expired' ? 'paused' : state;
}

/** A key as `--json` shows it; times are ISO 8601. */
function keyDocument(key: Key): Record<string, unknown> {
  return {
    id: key.id,
    name: key.name,
    mode: key.mode,
    state: stateOf(key),
    scopes: key.scopes,
    maxRank: key.maxRank ?? null,
    createdAt: isoOrNull(key.createdAt),
    expiresAt: isoOrNull(key.expiresAt),
    revokedAt: isoOrNull(key.revokedAt),
    pausedAt: isoOrNull(key.pausedAt),
    secrets: key.secrets.map(({ masked, createdAt, expiresAt }) => ({
      masked,
      createdAt: isoOrNull(createdAt),
      expiresAt: isoOrNull(expiresAt),
    })),
  };
}
