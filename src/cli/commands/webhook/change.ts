import { type Command, Option } from 'commander';
import { RankdError } from '../../../base/errors.ts';
import { counted } from '../../../base/text.ts';
import { isoTime } from '../../../base/time.ts';
import { waitingText } from '../../../core/webhooks/webhook.ts';
import { webhookDocument } from '../../../usecases/documents/webhook.ts';
import {
  addressFrom,
  disableWebhook,
  enableWebhook,
  eventsFrom,
  refuseForbidden,
  rotateWebhook,
  setWebhook,
} from '../../../usecases/webhooks/edit-webhooks.ts';
import { requireWebhook } from '../../../usecases/webhooks/require-webhook.ts';
import { viewWebhook } from '../../../usecases/webhooks/view-webhooks.ts';
import type { Cli } from '../../cli.ts';
import { duration, orNone } from '../../input/arguments.ts';
import { examples } from '../../output/help.ts';
import { keepIn, outOption } from '../key/hand-out.ts';
import { usualOverlapMs } from '../key/rotate.ts';
import { asDiscordId, eventsOption, nameArgument, readAddressText, sendingOf, urlFileOption } from './input.ts';

interface SetOptions {
  urlFile?: string;
  events?: string[];
  mention?: string;
}

export function setCommand(webhook: Command, cli: Cli): void {
  webhook
    .command('set')
    .description('change what the webhook is told, or where it leads; takes effect with the next delivery')
    .argument(...nameArgument)
    .option(...urlFileOption)
    .option(...eventsOption)
    .option('--mention <role>', 'id of the Discord role that alarms mention; none: no role', orNone(asDiscordId))
    .addHelpText('after', examples('rankd webhook set staff-log --events changes,alarms,refusals'))
    .action((name: string, options: SetOptions) => set(cli, name, options));
}

async function set(cli: Cli, name: string, { urlFile, events, mention }: SetOptions): Promise<void> {
  if (urlFile === undefined && events === undefined && mention === undefined) {
    throw new RankdError('usage', 'Say what to set.', { hint: 'rankd webhook set --help' });
  }
  const chosen = events && eventsFrom(events);
  const text = urlFile === undefined ? undefined : await readAddressText(cli, urlFile);
  const sending = text === undefined ? undefined : await sendingOf(cli);
  await cli.withStore(
    async (ports) => {
      const { kind } = await requireWebhook(ports, name);
      // An address that tells nothing of its kind is taken for the kind that the webhook is of.
      const read = text === undefined ? undefined : addressFrom(text, kind === 'discord' ? kind : undefined);
      if (read !== undefined && sending !== undefined) await refuseForbidden(sending, read, (doubt) => cli.warn(doubt));
      await setWebhook(ports, { name, target: read, events: chosen, mention, by: cli.by });
      const document = webhookDocument(await viewWebhook(ports, name));
      const told = `Webhook "${document.name}" tells ${document.events.join(', ') || 'what games send it'} to ${document.target}.`;
      cli.print({ webhook: document }, told);
    },
    { isWriting: true },
  );
}

export function rotateCommand(webhook: Command, cli: Cli): void {
  webhook
    .command('rotate')
    .description('make a new secret; the old one signs as well until the overlap ends')
    .argument(...nameArgument)
    .option('--overlap <duration>', 'how long both secrets sign (default: 24h)', duration)
    .option(...outOption)
    .addHelpText('after', examples('rankd webhook rotate my-bot --overlap 24h --out bot.secret'))
    .action((name: string, options: { overlap?: number; out?: string }) => rotate(cli, name, options));
}

async function rotate(
  cli: Cli,
  name: string,
  { overlap = usualOverlapMs, out }: { overlap?: number; out?: string },
): Promise<void> {
  await cli.withStore(
    async (ports) => {
      const request = { name, overlapMs: overlap, by: cli.by };
      const { webhook, secret } = await rotateWebhook(ports, request, keepIn(cli, out));
      const document = { webhook: webhookDocument(await viewWebhook(ports, name)) };
      if (out === undefined) await cli.printSurely({ ...document, secret }, secret);
      else cli.print({ ...document, out }, out);
      cli.say(`The old secret of "${name}" signs as well until ${isoTime(webhook.oldSecretUntil ?? 0)}.`);
    },
    { isWriting: true },
  );
}

export function enableCommand(webhook: Command, cli: Cli): void {
  webhook
    .command('enable')
    .description('deliver again, from where it stopped; what is older than 7 days is left out')
    .argument(...nameArgument)
    .addOption(new Option('--from <when>', 'now: leave out everything that waits').choices(['now']))
    .addHelpText('after', examples('rankd webhook enable staff-log', 'rankd webhook enable staff-log --from now'))
    .action((name: string, { from }: { from?: string }) => enable(cli, name, from === 'now'));
}

async function enable(cli: Cli, name: string, isFromNow: boolean): Promise<void> {
  await cli.withStore(
    async (ports) => {
      const { leftOut } = await enableWebhook(ports, { name, isFromNow, by: cli.by });
      const document = webhookDocument(await viewWebhook(ports, name));
      const left = leftOut === 0 ? '' : ` ${counted(leftOut, 'event')} ${leftOut === 1 ? 'is' : 'are'} left out.`;
      const text = `Webhook "${name}" is enabled; ${waitingText(document.backlog)} for it.${left}`;
      cli.print({ webhook: document, leftOut }, text);
    },
    { isWriting: true },
  );
}

export function disableCommand(webhook: Command, cli: Cli): void {
  webhook
    .command('disable')
    .description('deliver nothing until it is enabled again; what happens meanwhile waits')
    .argument(...nameArgument)
    .addHelpText('after', examples('rankd webhook disable staff-log'))
    .action((name: string) => disable(cli, name));
}

async function disable(cli: Cli, name: string): Promise<void> {
  await cli.withStore(
    async (ports) => {
      await disableWebhook(ports, { name, by: cli.by });
      cli.print({ webhook: webhookDocument(await viewWebhook(ports, name)) }, `Webhook "${name}" is disabled.`);
    },
    { isWriting: true },
  );
}
