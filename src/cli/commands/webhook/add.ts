import { type Command, Option } from 'commander';
import { defaultEvents } from '../../../core/webhooks/event-types.ts';
import type { Webhook } from '../../../core/webhooks/webhook.ts';
import { webhookDocument } from '../../../usecases/documents/webhook.ts';
import { addressFrom, addWebhook, eventsFrom, refuseForbidden } from '../../../usecases/webhooks/edit-webhooks.ts';
import { lookAtDiscord, testWebhook } from '../../../usecases/webhooks/try-webhook.ts';
import { viewWebhook } from '../../../usecases/webhooks/view-webhooks.ts';
import type { Cli } from '../../cli.ts';
import { ExitCode } from '../../output/errors.ts';
import { examples } from '../../output/help.ts';
import { whileWaiting } from '../../output/terminal.ts';
import { keepIn, outOption } from '../key/hand-out.ts';
import { asDiscordId, eventsOption, readAddressText, sendingOf, urlFileOption, webhookName } from './input.ts';
import { exitCodeOf, inWords } from './test.ts';

interface AddOptions {
  urlFile?: string;
  events?: string[];
  kind?: Webhook['kind'];
  mention?: string;
  forGames?: boolean;
  out?: string;
  test: boolean;
}

export function addCommand(webhook: Command, cli: Cli): void {
  webhook
    .command('add')
    .description('tell a channel in Discord, or a program of yours, what happens; it asks for the address')
    .argument('<name>', 'name of the webhook', webhookName)
    .option(...urlFileOption)
    .option(...eventsOption)
    .addOption(new Option('--kind <kind>', 'what the target takes, if the address does not tell').choices(kinds))
    .option('--mention <role>', 'id of the Discord role that alarms mention', asDiscordId)
    .option(
      '--for-games',
      'a game may choose this webhook by sending its address; without --events, it gets no other events',
    )
    .option('--no-test', 'send no test event')
    .option(...outOption)
    .addHelpText(
      'after',
      examples(
        'rankd webhook add staff-log --url-file discord.url',
        'rankd webhook add staff-log --url-file discord.url --events all --mention 1482005551234567890',
        'rankd webhook add my-bot --url-file bot.url --out bot.secret',
      ),
    )
    .action((name: string, options: AddOptions) => add(cli, name, options));
}

const kinds = ['discord', 'standard'];

async function add(cli: Cli, name: string, options: AddOptions): Promise<void> {
  const { urlFile, events, kind, mention, forGames = false, out } = options;
  const chosen = events === undefined ? undefined : eventsFrom(events);
  const target = addressFrom(await readAddressText(cli, urlFile), kind);
  const sending = await sendingOf(cli);
  const known = await whileWaiting(cli.line, 'looking at the target', async () => {
    await refuseForbidden(sending, target, (doubt) => cli.warn(doubt));
    return target.kind === 'discord' ? lookAtDiscord(sending, target) : undefined;
  });
  const told = chosen ?? (forGames ? [] : [...defaultEvents[target.kind]]);
  const request = { name, target, events: told, mention, isForGames: forGames, by: cli.by };
  await cli.withStore(
    async (ports) => {
      const { webhook, secret } = await addWebhook(ports, request, keepIn(cli, out));
      const document = { webhook: webhookDocument(await viewWebhook(ports, name)), discord: known ?? null };
      if (secret !== undefined && out === undefined) await cli.printSurely({ ...document, secret }, secret);
      else cli.print({ ...document, ...(out !== undefined && { out }) }, out ?? webhook.shown);
      if (known !== undefined) cli.say(`In Discord it is called ${known.name}, in the channel ${known.channelId}.`);
      if (secret !== undefined && out === undefined) cli.say('This secret signs what is sent: it is not shown again.');
      cli.say(`Webhook "${name}" tells ${told.join(', ') || 'what games send it'} to ${webhook.shown}.`);
      if (!options.test) return;
      const result = await whileWaiting(cli.line, 'sending a test', () => testWebhook({ ...ports, ...sending }, name));
      cli.say(inWords(result));
      if (exitCodeOf(result.outcome) !== 0) throw new ExitCode(69);
    },
    { isWriting: true },
  );
}
