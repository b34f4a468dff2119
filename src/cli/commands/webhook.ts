import { InvalidArgumentError } from 'commander';
import { openWebhookSender } from '../../app.ts';
import { systemClock } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import { counted } from '../../base/text.ts';
import { isoTime } from '../../base/time.ts';
import type { Config } from '../../config/config.ts';
import { defaultEvents, eventGroups } from '../../core/webhooks/event-types.ts';
import type { Outcome } from '../../core/webhooks/progress.ts';
import { isWebhookName, waitingText } from '../../core/webhooks/webhook.ts';
import {
  addressFrom,
  addWebhook,
  disableWebhook,
  enableWebhook,
  eventsFrom,
  refuseForbidden,
  removeWebhook,
  rotateWebhook,
  setWebhook,
} from '../../usecases/webhooks/edit-webhooks.ts';
import {
  readDiscordWebhook,
  requireWebhook,
  type Sending,
  settingsOf,
  type TestOutcome,
  testWebhook,
} from '../../usecases/webhooks/send.ts';
import { maxCounted, viewWebhook, viewWebhooks } from '../../usecases/webhooks/view-webhooks.ts';
import { webhookDocument, webhookTestDocument } from '../../usecases/webhooks/webhook-document.ts';
import type { Cli } from '../cli.ts';
import { argument, choice, command, commandGroup, flag, option, type ValuesOf } from '../command.ts';
import { duration, nonEmpty, orNone } from '../input/arguments.ts';
import { confirm } from '../input/confirm.ts';
import { readInput } from '../input/lists.ts';
import { ExitCode } from '../output/errors.ts';
import { facts, table, when } from '../output/table.ts';
import { whileWaiting } from '../output/terminal.ts';
import { usualOverlapMs } from './key.ts';
import { out, saveTo } from './key-secrets.ts';
import { deliveriesCommand, redeliverCommand } from './webhook-deliveries.ts';

const name = argument('<name>', 'name of the webhook');

const target = {
  urlFile: option(
    '--url-file <file>',
    'the file with the address; - is standard input, which is also the default',
    nonEmpty,
  ),
  events: option(
    '--events <names>',
    `which events it gets: ${eventGroups.join(', ')}, or single events, separated by commas`,
    (text) => text.split(',').map((name) => name.trim()),
  ),
};

const addOptions = {
  ...target,
  kind: choice('--kind <kind>', 'the format that the target expects, if its address does not show it', [
    'discord',
    'standard',
  ]),
  mention: option('--mention <role>', 'id of the Discord role that alarms mention', asDiscordId),
  forGames: flag(
    '--for-games',
    'a game may choose this webhook by sending its address; without --events, it gets no other events',
  ),
  test: flag('--no-test', 'send no test event'),
  out,
};

export const webhookCommands = commandGroup({
  name: 'webhook',
  about: 'the Discord channels and programs that rankd notifies',
  examples: ['rankd webhook add staff-log', 'rankd webhook list'],
  commands: [
    command({
      name: 'add',
      about: 'notify a Discord channel or your own program; asks for the address',
      args: [argument('<name>', 'name of the webhook', webhookName)],
      options: addOptions,
      examples: [
        'rankd webhook add staff-log --url-file discord.url',
        'rankd webhook add staff-log --url-file discord.url --events all --mention 1482005551234567890',
        'rankd webhook add my-bot --url-file bot.url --out bot.secret',
      ],
      run: add,
    }),
    command({
      name: 'list',
      about: 'all webhooks, and how many events are waiting for each',
      examples: ['rankd webhook list', 'rankd webhook list --json'],
      run: list,
    }),
    command({
      name: 'show',
      about: 'one webhook: its state, the number of waiting events, and the last error',
      args: [name],
      examples: ['rankd webhook show staff-log'],
      run: async (cli, name) => {
        const document = webhookDocument(await cli.withStore((ports) => viewWebhook(ports, name)));
        cli.print({ webhook: document }, facts({ ...document, backlog: backlogText(document.backlog) }));
      },
    }),
    command({
      name: 'test',
      about: 'send one test event; exits with 5 if the target refuses it, and 69 if it cannot be reached',
      args: [name],
      examples: ['rankd webhook test staff-log'],
      run: test,
    }),
    command({
      name: 'set',
      about: 'change which events the webhook gets, or its address; takes effect with the next delivery',
      args: [name],
      options: {
        ...target,
        urlFile: option('--url-file <file>', 'the file with the new address; - is standard input', nonEmpty),
        mention: option(
          '--mention <role>',
          'id of the Discord role that alarms mention; none: no role',
          orNone(asDiscordId),
        ),
      },
      examples: ['rankd webhook set staff-log --events changes,alarms,refusals'],
      run: set,
    }),
    command({
      name: 'rotate',
      about: 'create a new secret; until the overlap ends, both secrets sign each event',
      args: [name],
      options: { overlap: option('--overlap <duration>', 'how long both secrets sign (default: 24h)', duration), out },
      examples: ['rankd webhook rotate my-bot --overlap 24h --out bot.secret'],
      run: rotate,
    }),
    command({
      name: 'enable',
      about: 'deliver again, from where it stopped; events older than 7 days are skipped',
      args: [name],
      options: { from: choice('--from <when>', 'now: skip every waiting event', ['now']) },
      examples: ['rankd webhook enable staff-log', 'rankd webhook enable staff-log --from now'],
      run: enable,
    }),
    command({
      name: 'disable',
      about: 'deliver nothing until it is enabled again; events wait until then',
      args: [name],
      examples: ['rankd webhook disable staff-log'],
      run: (cli, name) =>
        cli.withWrites(async (ports) => {
          await disableWebhook(ports, { name, by: cli.by });
          cli.print({ webhook: webhookDocument(await viewWebhook(ports, name)) }, `Webhook "${name}" is disabled.`);
        }),
    }),
    command({
      name: 'remove',
      about: 'stop delivering to the webhook, and delete its address',
      args: [name],
      examples: ['rankd webhook remove staff-log', 'rankd webhook remove staff-log -y'],
      run: async (cli, name) => {
        await cli.withWrites(async (ports) => {
          await requireWebhook(ports, name);
          await confirm(cli, `Remove the webhook "${name}" and the events that are waiting for it?`);
          await removeWebhook(ports, { name, by: cli.by });
        });
        cli.print({ removed: name }, `Webhook "${name}" is removed.`);
      },
    }),
    deliveriesCommand,
    redeliverCommand,
  ],
});

async function add(cli: Cli, name: string, options: ValuesOf<typeof addOptions>): Promise<void> {
  const { urlFile, events, kind, mention, forGames, out } = options;
  const chosen = events === undefined ? undefined : eventsFrom(events);
  const target = addressFrom(await readAddressText(cli, urlFile), kind);
  const sending = await sendingOf(cli);
  const known = await whileWaiting(cli.line, 'checking the target', async () => {
    await refuseForbidden(sending, target, (doubt) => cli.warn(doubt));
    return target.kind === 'discord' ? readDiscordWebhook(sending, target) : undefined;
  });
  const own = chosen ?? (forGames ? [] : [...defaultEvents[target.kind]]);
  const request = { name, target, events: own, mention, isForGames: forGames, by: cli.by };
  await cli.withWrites(async (ports) => {
    const { webhook, secret } = await addWebhook(ports, request, saveTo(cli, out));
    const document = { webhook: webhookDocument(await viewWebhook(ports, name)), discord: known ?? null };
    if (secret !== undefined && out === undefined) await cli.printOrFail({ ...document, secret }, secret);
    else cli.print({ ...document, ...(out !== undefined && { out }) }, out ?? webhook.shown);
    if (known !== undefined) cli.say(`Its name in Discord is ${known.name}, and its channel is ${known.channelId}.`);
    if (secret !== undefined && out === undefined) cli.say('This secret signs each event: it is not shown again.');
    cli.say(`Webhook "${name}" sends ${eventsText(own)} to ${webhook.shown}.`);
    if (!options.test) return;
    const result = await whileWaiting(cli.line, 'sending a test', () => testWebhook({ ...ports, ...sending }, name));
    cli.say(inWords(result));
    if (exitCodeOf(result.outcome) !== 0) throw new ExitCode(69);
  });
}

function eventsText(events: readonly string[]): string {
  return events.join(', ') || "games' own messages";
}

async function list(cli: Cli): Promise<void> {
  const documents = (await cli.withStore(viewWebhooks)).map(webhookDocument);
  const rows = documents.map(({ name, kind, state, events, backlog, lastSuccess, target }) => [
    ...[name, kind, state, events.join(', ') || '-', backlogText(backlog)],
    ...[when(lastSuccess === null ? null : Date.parse(lastSuccess)), target],
  ]);
  const columns = ['name', 'kind', 'state', 'events', 'waiting', 'last success', 'target'];
  cli.print({ webhooks: documents }, table(columns, rows));
  if (documents.length === 0) cli.say('There is no webhook.\ntry: rankd webhook add NAME');
}

function backlogText(backlog: number): string {
  return backlog < maxCounted ? String(backlog) : `${maxCounted} or more`;
}

async function test(cli: Cli, name: string): Promise<void> {
  const sending = await sendingOf(cli);
  const result = await whileWaiting(cli.line, 'sending a test', () =>
    cli.withStore((ports) => testWebhook({ ...ports, ...sending }, name)),
  );
  cli.print(webhookTestDocument(result), inWords(result));
  const code = exitCodeOf(result.outcome);
  if (code !== 0) throw new ExitCode(code);
}

export function inWords({ webhook: { name, shown }, outcome, ms }: TestOutcome): string {
  if (outcome.kind === 'delivered') return `${name}: the target accepted the test event (${outcome.status}, ${ms} ms).`;
  return `${name}: ${shown} did not accept the test event: ${outcome.error} (${ms} ms).`;
}

function exitCodeOf(outcome: Outcome): number {
  if (outcome.kind === 'delivered') return 0;
  return outcome.status === undefined ? 69 : 5;
}

interface RequestedSetting {
  urlFile?: string;
  events?: string[];
  mention?: string;
}

async function set(cli: Cli, name: string, { urlFile, events, mention }: RequestedSetting): Promise<void> {
  if (urlFile === undefined && events === undefined && mention === undefined) {
    throw new RankdError('usage', 'Give at least one setting to change.', { hint: 'rankd webhook set --help' });
  }
  const chosen = events && eventsFrom(events);
  const text = urlFile === undefined ? undefined : await readAddressText(cli, urlFile);
  const sending = text === undefined ? undefined : await sendingOf(cli);
  await cli.withWrites(async (ports) => {
    const { kind } = await requireWebhook(ports, name);
    // the address of a Discord webhook does not always show its kind
    const read = text === undefined ? undefined : addressFrom(text, kind === 'discord' ? kind : undefined);
    if (read !== undefined && sending !== undefined) await refuseForbidden(sending, read, (doubt) => cli.warn(doubt));
    await setWebhook(ports, { name, target: read, events: chosen, mention, by: cli.by });
    const document = webhookDocument(await viewWebhook(ports, name));
    const outcome = `Webhook "${document.name}" sends ${eventsText(document.events)} to ${document.target}.`;
    cli.print({ webhook: document }, outcome);
  });
}

async function rotate(
  cli: Cli,
  name: string,
  { overlap = usualOverlapMs, out }: { overlap?: number; out?: string },
): Promise<void> {
  await cli.withWrites(async (ports) => {
    const request = { name, overlapMs: overlap, by: cli.by };
    const { webhook, secret } = await rotateWebhook(ports, request, saveTo(cli, out));
    const document = { webhook: webhookDocument(await viewWebhook(ports, name)) };
    if (out === undefined) await cli.printOrFail({ ...document, secret }, secret);
    else cli.print({ ...document, out }, out);
    cli.say(
      overlap === 0
        ? `The old secret of "${name}" no longer signs events.`
        : `Until ${isoTime(webhook.oldSecretUntil ?? 0)}, the old secret of "${name}" also signs each event.`,
    );
  });
}

async function enable(cli: Cli, name: string, { from }: { from?: 'now' }): Promise<void> {
  await cli.withWrites(async (ports) => {
    const { leftOut } = await enableWebhook(ports, { name, skipsBacklog: from === 'now', by: cli.by });
    const document = webhookDocument(await viewWebhook(ports, name));
    const left = leftOut === 0 ? '' : ` ${counted(leftOut, 'event')} ${leftOut === 1 ? 'is' : 'are'} skipped.`;
    const text = `Webhook "${name}" is enabled; ${waitingText(document.backlog)} for it.${left}`;
    cli.print({ webhook: document, leftOut }, text);
  });
}

/** The address is never a command-line option, because the shell would store it in its history. */
async function readAddressText({ io }: Cli, urlFile: string | undefined): Promise<string> {
  if (urlFile === undefined || urlFile === '-') return io.readSecret('Address of the webhook (not shown): ');
  return readInput(io, urlFile);
}

async function sendingOf(cli: Cli): Promise<Sending> {
  return sendingWith((await cli.loadConfig()).config);
}

export function sendingWith({ webhooks }: Pick<Config, 'webhooks'>): Sending {
  return { clock: systemClock, sender: openWebhookSender(systemClock), webhooks: settingsOf(webhooks) };
}

function webhookName(text: string): string {
  if (isWebhookName(text)) return text;
  throw new InvalidArgumentError('It must be 1 to 40 of the characters a-z, 0-9 and -.');
}

function asDiscordId(text: string): string {
  if (/^\d{5,25}$/.test(text)) return text;
  throw new InvalidArgumentError(
    'It must be the id of a role: in Discord with Developer Mode on, right-click the role and copy its id.',
  );
}
