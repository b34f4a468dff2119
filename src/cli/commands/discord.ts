import { resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { openWebhookSender } from '../../app.ts';
import { systemClock } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import { asBaseUrl } from '../../base/net.ts';
import { readAtMost } from '../../base/read-file.ts';
import type { Config } from '../../config/config.ts';
import type { DiscordConfig } from '../../config/discord.ts';
import { isDiscordId } from '../../core/discord-person.ts';
import { usualScopes } from '../../core/model.ts';
import type { UserRef } from '../../core/user-ref.ts';
import type { Ports } from '../../ports/index.ts';
import { registerCommands } from '../../usecases/discord/discord-api.ts';
import { linkPerson, unlinkPerson } from '../../usecases/discord/discord-people.ts';
import { linksDocument, listNamedLinks } from '../../usecases/discord/links-document.ts';
import { createDiscordKey } from '../../usecases/keys/keys.ts';
import type { Cli } from '../cli.ts';
import { argument, command, commandGroup, option, type ValuesOf } from '../command.ts';
import { ask } from '../init/credential.ts';
import { asUser, keyName, userHelp } from '../input/arguments.ts';
import { isAgreed } from '../input/confirm.ts';
import { userIdOf } from '../input/people.ts';
import { table, when } from '../output/table.ts';
import { whileWaiting } from '../output/terminal.ts';

const usualApi = 'https://discord.com/api/v10';

type Row = Pick<DiscordConfig['rows'][number], 'role' | 'key'>;

const person = argument('<discord-id>', 'Discord user id, which /link shows to that person', asDiscordId);

const setupOptions = {
  application: option('--application <id>', "application id, from Discord's Developer Portal", asDiscordId),
  publicKey: option('--public-key <hex>', 'public key, from the same page', asPublicKey),
  server: option('--server <id>', 'id of the Discord server', asDiscordId),
  row: option(
    '--row <role=key...>',
    'a Discord role id, and the key for members with that role; the first match applies',
    asRow,
  ),
  tokenFile: option(
    '--token-file <file>',
    'file with the bot token, - for standard input; rankd uses the token once and does not store it',
  ),
};

export const discordCommands = commandGroup({
  name: 'discord',
  about: 'ranking from Discord, with slash commands that follow the rules of a key',
  examples: ['rankd discord setup', 'rankd discord link 4400000000000000005 Newcomer'],
  commands: [
    command({
      name: 'setup',
      about: 'register the slash commands in a server, and print the lines for rankd.yaml; you can run it again',
      options: setupOptions,
      examples: [
        'rankd discord setup',
        'rankd discord setup --token-file bot.token',
        'rankd discord setup --application 1100000000000000001 --public-key 3f2a… --server 2200000000000000002 --row 3300000000000000003=hr --token-file bot.token',
      ],
      run: setup,
    }),
    command({
      name: 'link',
      about: 'record which Roblox user a Discord user is, for the rules about who may rank',
      args: [person, argument('<user>', userHelp, asUser)],
      examples: ['rankd discord link 4400000000000000005 Newcomer'],
      run: link,
    }),
    command({
      name: 'unlink',
      about: 'remove the link between a Discord user and a Roblox user',
      args: [person],
      examples: ['rankd discord unlink 4400000000000000005'],
      run: async (cli, discordId) => {
        await cli.withWrites((ports) => unlinkPerson(ports, { discordId, by: cli.by }));
        cli.print({ unlinked: discordId }, `Discord user ${discordId} is no longer linked.`);
      },
    }),
    command({
      name: 'links',
      about: 'all Discord users that are linked to a Roblox user',
      examples: ['rankd discord links', 'rankd discord links --json'],
      run: links,
    }),
  ],
});

async function link(cli: Cli, discordId: string, user: UserRef): Promise<void> {
  const userId = await userIdOf(cli, user);
  const { before } = await cli.withWrites((ports) => linkPerson(ports, { discordId, userId, by: cli.by }));
  const was = before === undefined || before === userId ? '' : ` instead of ${before}`;
  cli.print(
    { link: { discordId, userId }, before: before ?? null },
    `Discord user ${discordId} is linked to Roblox user ${userId}${was}.`,
  );
}

async function links(cli: Cli): Promise<void> {
  const found = await cli.withStore(listNamedLinks);
  const rows = found.map(({ discordId, userId, userName = '', linkedBy = '', linkedAt }) => [
    ...[discordId, String(userId), userName, linkedBy],
    when(linkedAt),
  ]);
  cli.print({ links: linksDocument(found) }, table(['discord id', 'user id', 'name', 'linked by', 'at'], rows));
  if (found.length === 0) cli.say('No Discord user is linked.\ntry: rankd discord link DISCORD_ID USER');
}

async function setup(cli: Cli, options: ValuesOf<typeof setupOptions>): Promise<void> {
  const { config, origins } = await cli.loadConfig();
  const { discord } = config;
  const application = await knownOrAsked(cli, options.application ?? discord?.application, {
    ...{ flag: '--application', parse: asDiscordId },
    question: 'Application id (Developer Portal, your application, General Information): ',
  });
  const publicKey = await knownOrAsked(cli, options.publicKey ?? discord?.publicKey, {
    ...{ flag: '--public-key', parse: asPublicKey },
    question: 'Public key (same page): ',
  });
  const server = await knownOrAsked(cli, options.server ?? discord?.server, {
    ...{ flag: '--server', parse: asDiscordId },
    question: 'Server id (in Discord with Developer Mode on: right-click the server, Copy Server ID): ',
  });
  const rows = options.row ?? discord?.rows ?? (await askForRows(cli));
  const apiBaseUrl = asBaseUrl(String(origins.get('discord.api_base_url')?.value)) ?? usualApi;
  const names = [...new Set(rows.map(({ key }) => key))];
  const missing = await cli.withStore((ports) => missingKeys(ports, names));
  const install = `https://discord.com/oauth2/authorize?client_id=${application}&scope=applications.commands&guild_id=${server}`;
  cli.say(`Add the application to the server, if you have not yet, at\n${install}`);
  const token = await readToken(cli, options.tokenFile);
  for (const name of missing) await requireConsent(cli, name);
  await cli.withWrites((ports, isSimulated) => makeKeys(cli, ports, { names: missing, isSimulated }));
  const sending = { sender: openWebhookSender(systemClock) };
  await whileWaiting(cli.line, 'waiting for Discord', () =>
    registerCommands(sending, { application, server, apiBaseUrl }, token),
  );
  const yaml = blockOf({ application, publicKey, server, rows, apiBaseUrl });
  const endpoint = endpointOf(config);
  cli.say(
    'The commands are registered. Put these lines into rankd.yaml, in place of its discord section if it has one:\n',
  );
  cli.print(
    { application, publicKey, server, rows: rows.map(({ role, key }) => ({ role, key })), endpoint, install, yaml },
    yaml,
  );
  cli.say(
    endpoint === null
      ? '\nAlso set server.public_url in rankd.yaml. Then run rankd reload, and paste that address, followed by /discord/interactions, as the Interactions Endpoint URL (General Information).'
      : `\nThen run rankd reload, and paste this as the Interactions Endpoint URL (General Information):\n${endpoint}`,
  );
}

function endpointOf({ server }: Config): string | null {
  return server.publicUrl === undefined ? null : `${server.publicUrl}/discord/interactions`;
}

function blockOf({
  application,
  publicKey,
  server,
  rows,
  apiBaseUrl,
}: Omit<DiscordConfig, 'rows'> & { rows: Row[] }): string {
  return [
    ...['discord:', `  application: "${application}"`, `  public_key: "${publicKey}"`, `  server: "${server}"`],
    ...['  commands:', ...rows.map(({ role, key }) => `    - { role: "${role}", key: ${key} }`)],
    ...(apiBaseUrl === usualApi ? [] : [`  api_base_url: ${apiBaseUrl}`]),
  ].join('\n');
}

async function knownOrAsked(
  { io }: Cli,
  known: string | undefined,
  { flag, question, parse }: { flag: string; question: string; parse: (text: string) => string },
): Promise<string> {
  if (known !== undefined) return known;
  if (io.isTerminal) return ask(io, { question, parse });
  throw new RankdError('usage', `Without a terminal, discord setup needs ${flag}, unless rankd.yaml has it.`, {
    hint: 'rankd discord setup --help',
  });
}

async function askForRows({ io }: Cli): Promise<Row[]> {
  if (!io.isTerminal)
    throw new RankdError(
      'usage',
      'Without a terminal, discord setup needs --row, unless rankd.yaml has discord.commands.',
      {
        hint: 'add --row 3300000000000000003=trainers',
      },
    );
  const first = 'Id of the Discord role whose members may rank (right-click it, Copy Role ID): ';
  const rows: Row[] = [];
  for (;;) {
    const role = await ask(io, {
      question: rows.length === 0 ? first : 'Id of another role, or Enter to continue: ',
      parse: (text) => (text === '' && rows.length > 0 ? undefined : asNewRole(text, rows)),
    });
    if (role === undefined) return rows;
    rows.push({
      role,
      key: await ask(io, {
        question: "Name of the key for this role, not a game's key [staff]: ",
        parse: keyName,
        preset: 'staff',
      }),
    });
  }
}

/** Returns the names for which no unrevoked key exists. Throws `conflict` if a game's key has one of the names. */
async function missingKeys({ store }: Pick<Ports, 'store'>, names: string[]): Promise<string[]> {
  const missing: string[] = [];
  for (const name of names) {
    const key = await store.findKey(name);
    if (key?.name !== name || key.revokedAt !== undefined) missing.push(name);
    else if (!key.isForDiscord)
      throw new RankdError('conflict', `The key "${name}" is for a game; a role on Discord needs a Discord key.`, {
        hint: 'choose a different name, and rankd will create a Discord key with it',
      });
  }
  return missing;
}

async function makeKeys(
  cli: Cli,
  ports: Pick<Ports, 'store' | 'clock'>,
  { names, isSimulated }: { names: string[]; isSimulated: () => Promise<boolean> },
): Promise<void> {
  for (const name of names) {
    await createDiscordKey(ports, {
      ...{ name, mode: 'live', scopes: [...usualScopes], by: cli.by },
      ...((await isSimulated()) && { isSimulated: true }),
    });
    cli.say(
      `Created key "${name}". To limit what it can do: rankd key set ${name} --max-rank RANK --direction promote`,
    );
  }
}

async function requireConsent(cli: Cli, name: string): Promise<void> {
  const question = `There is no key "${name}" for Discord. Create it?`;
  const isWanted = cli.options.yes || (cli.io.isTerminal && (await isAgreed(cli, question, { preset: true })));
  if (isWanted) return;
  throw new RankdError('not_found', `There is no key "${name}" for Discord.`, {
    hint: `rankd key create ${name} --for-discord, or add -y`,
  });
}

async function readToken({ io }: Cli, file: string | undefined): Promise<string> {
  const question = 'Bot token (Bot page, Reset Token; not shown, used once and not stored): ';
  if (file === undefined && !io.isTerminal)
    throw new RankdError('usage', 'Without a terminal, discord setup needs --token-file.', {
      hint: '--token-file bot.token, or --token-file - for standard input',
    });
  if (file === undefined) {
    const hidden = { ask: (text: string) => io.askHidden(text), stderr: (text: string) => io.stderr(text) };
    return ask(hidden, { question, parse: asToken });
  }
  const text = (file === '-' ? await io.readSecret(question) : readTokenFile(resolve(io.cwd, file))).trim();
  if (tokenShape.test(text)) return text;
  throw new RankdError('usage', `${file === '-' ? 'Standard input' : file} does not contain a bot token.`, {
    hint: tokenHint,
  });
}

function readTokenFile(file: string): string {
  try {
    return readAtMost(file, 1_000_000).toString();
  } catch (cause) {
    throw new RankdError('not_found', `The bot token file ${file} can't be read.`, {
      cause,
      hint: 'name an existing file that you can read',
    });
  }
}

const tokenShape = /^[\w.-]{20,200}$/;
const tokenHint = 'copy the token again: Developer Portal, Bot page, Reset Token';

/** The error must not repeat the text, because it may be the token. */
function asToken(text: string): string {
  if (tokenShape.test(text)) return text;
  throw new InvalidArgumentError(`This is not a bot token: ${tokenHint}.`);
}

function asDiscordId(text: string): string {
  if (isDiscordId(text)) return text;
  throw new InvalidArgumentError('It must be a Discord id, which has only digits, such as 1100000000000000001.');
}

function asPublicKey(text: string): string {
  if (/^[\da-f]{64}$/i.test(text)) return text.toLowerCase();
  throw new InvalidArgumentError('It must be the public key of the application: 64 hex digits.');
}

function asRow(text: string, earlier?: unknown): Row[] {
  const rows: Row[] = Array.isArray(earlier) ? earlier : [];
  const [role = '', key = ''] = text.split('=', 2);
  if (!isDiscordId(role))
    throw new InvalidArgumentError('It must be a role id, an equals sign and the name of a key, such as 33000…=hr.');
  return [...rows, { role: asNewRole(role, rows), key: keyName(key) }];
}

function asNewRole(text: string, rows: readonly Row[]): string {
  const role = asDiscordId(text);
  if (rows.some((row) => row.role === role)) throw new InvalidArgumentError('This role already has a row.');
  return role;
}
