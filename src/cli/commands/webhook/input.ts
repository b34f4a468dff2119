import { InvalidArgumentError } from 'commander';
import { openWebhookSender } from '../../../app.ts';
import { systemClock } from '../../../base/clock.ts';
import { eventGroups } from '../../../core/webhooks/event-types.ts';
import { isWebhookName } from '../../../core/webhooks/webhook.ts';
import { type Sending, settingsOf } from '../../../usecases/webhooks/target.ts';
import type { Cli } from '../../cli.ts';
import { filled } from '../../input/arguments.ts';
import { readInput } from '../../input/lists.ts';

export const nameArgument = ['<name>', 'name of the webhook'] as const;

export const urlFileOption = [
  '--url-file <file>',
  'the address is in this file; - is standard input, which is also read without this option',
  filled,
] as const;

export const eventsOption = [
  '--events <names>',
  `what is told: ${eventGroups.join(', ')}, or single events, separated by commas`,
  (text: string) => text.split(',').map((name) => name.trim()),
] as const;

export function webhookName(text: string): string {
  if (isWebhookName(text)) return text;
  throw new InvalidArgumentError('It must be 1 to 40 of the characters a-z, 0-9 and -.');
}

export function asDiscordId(text: string): string {
  if (/^\d{5,25}$/.test(text)) return text;
  throw new InvalidArgumentError('It must be the id of a role: in Discord, right-click the role and copy its id.');
}

/** An address is never a flag: the history of a shell would keep it. */
export async function readAddressText({ io }: Cli, urlFile: string | undefined): Promise<string> {
  if (urlFile === undefined || urlFile === '-') return io.readSecret('Address of the webhook (not shown): ');
  return readInput(io, urlFile);
}

/** The context to send next to the daemon, with the same settings. */
export async function sendingOf(cli: Cli): Promise<Sending> {
  const { config } = await cli.loadConfig();
  return { clock: systemClock, sender: openWebhookSender(systemClock), webhooks: settingsOf(config.webhooks) };
}
