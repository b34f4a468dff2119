import { InvalidArgumentError } from 'commander';
import { asRankdError, isRankdError } from '../../base/errors.ts';
import type { Config } from '../../config/config.ts';
import { defaultEvents } from '../../core/webhooks/event-types.ts';
import { readAddress, type WebhookAddress } from '../../core/webhooks/webhook.ts';
import { hintOf } from '../../usecases/error-document.ts';
import { addWebhook, refuseForbidden } from '../../usecases/webhooks/edit-webhooks.ts';
import { readDiscordWebhook, type Sending, testWebhook } from '../../usecases/webhooks/send.ts';
import { viewWebhooks } from '../../usecases/webhooks/view-webhooks.ts';
import type { Cli } from '../cli.ts';
import { inWords, sendingWith } from '../commands/webhook.ts';
import { whileWaiting } from '../output/terminal.ts';
import { ask } from './credential.ts';

interface FirstWebhook {
  target: WebhookAddress;
  sending: Sending;
}

const name = 'staff-log';
const question = 'Address of a Discord webhook that gets each change (not shown; Enter for none): ';

export async function requestWebhook(cli: Cli, config: Config): Promise<FirstWebhook | undefined> {
  const { io } = cli;
  if (!io.isTerminal) return undefined;
  const known = await cli.withStore(viewWebhooks);
  if (known.some(({ webhook }) => webhook.name === name)) return undefined;
  const sending = sendingWith(config);
  const hidden = { ask: (text: string) => io.askHidden(text), stderr: (text: string) => io.stderr(text) };
  const parse = async (text: string) => {
    if (text === '') return undefined;
    const read = readAddress(text, 'discord');
    if ('refusal' in read) throw asAnswer(read.refusal);
    await whileWaiting(cli.line, 'checking the channel', async () => {
      await refuseForbidden(sending, read, (doubt) => cli.warn(doubt));
      await readDiscordWebhook(sending, read);
    }).catch((error) => {
      throw isRankdError(error) ? asAnswer(error) : error;
    });
    return { target: read, sending };
  };
  return ask(hidden, { question, parse });
}

function asAnswer(error: Parameters<typeof hintOf>[0]): InvalidArgumentError {
  return new InvalidArgumentError(`${error.message}\ntry: ${hintOf(error)}`);
}

export async function makeWebhook(cli: Cli, { target, sending }: FirstWebhook): Promise<string | null> {
  const request = { name, target, events: [...defaultEvents.discord], by: cli.by };
  try {
    return await cli.withWrites(async (ports) => {
      await addWebhook(ports, request);
      const tried = await whileWaiting(cli.line, 'sending a test', () => testWebhook({ ...ports, ...sending }, name));
      cli.say(`Created webhook "${name}". ${inWords(tried)}`);
      return name;
    });
  } catch (error) {
    const { message } = asRankdError(error);
    cli.say(`warning: the webhook was not created: ${message}\ntry: rankd webhook add ${name}`);
    return null;
  }
}
