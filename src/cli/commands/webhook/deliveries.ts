import type { Command } from 'commander';
import { RankdError } from '../../../base/errors.ts';
import { counted } from '../../../base/text.ts';
import { sequenceIn } from '../../../core/webhooks/webhook.ts';
import { deliveryDocument, redeliveryDocument } from '../../../usecases/documents/webhook.ts';
import { eventsToRedeliver, redeliver } from '../../../usecases/webhooks/redeliver.ts';
import { listDeliveries } from '../../../usecases/webhooks/view-webhooks.ts';
import type { Cli } from '../../cli.ts';
import { moment, refuseEmptyPeriod, wholeNumber } from '../../input/arguments.ts';
import { confirm } from '../../input/confirm.ts';
import { examples } from '../../output/help.ts';
import { table } from '../../output/table.ts';
import { nameArgument } from './input.ts';

export function deliveriesCommand(webhook: Command, cli: Cli): void {
  webhook
    .command('deliveries')
    .description('what became of events on the way to a webhook, newest first')
    .argument(...nameArgument)
    .option('--failed', 'only those that were given up')
    .option('--limit <n>', 'at most so many', wholeNumber(1, 10_000), 50)
    .addHelpText(
      'after',
      examples('rankd webhook deliveries my-bot', 'rankd webhook deliveries my-bot --failed --json'),
    )
    .action((name: string, options: { failed?: boolean; limit: number }) => list(cli, name, options));
}

async function list(
  cli: Cli,
  name: string,
  { failed = false, limit }: { failed?: boolean; limit: number },
): Promise<void> {
  const found = await cli.withStore((ports) => listDeliveries(ports, { name, isFailed: failed, limit }));
  const documents = found.deliveries.map((delivery) => deliveryDocument(delivery, found.workspaceId));
  const rows = documents.map(({ sequence, type, state, tries, status, nextTry, lastTry, error }) => [
    ...[String(sequence), type, state, String(tries), String(status ?? '-'), lastTry, nextTry ?? '-', error ?? ''],
  ]);
  const columns = ['event', 'type', 'state', 'tries', 'status', 'last try', 'next try', 'error'];
  cli.print({ deliveries: documents }, table(columns, rows));
  if (documents.length === 0) cli.say('There is none.');
}

interface RedeliverOptions {
  failed?: boolean;
  since?: number;
  until?: number;
  dryRun?: boolean;
}

export function redeliverCommand(webhook: Command, cli: Cli): void {
  webhook
    .command('redeliver')
    .description('deliver events once more, under the same ids')
    .argument(...nameArgument)
    .argument('[event...]', 'numbers or ids of events')
    .option('--failed', 'all that were given up')
    .option('--since <when>', 'all from then on: a time, or a duration such as 1d', moment)
    .option('--until <when>', 'with --since: only what happened before', moment)
    .option('--dry-run', 'only say how many')
    .addHelpText('after', examples('rankd webhook redeliver my-bot 4711', 'rankd webhook redeliver my-bot --failed'))
    .action((name: string, events: string[], options: RedeliverOptions) => again(cli, name, events, options));
}

const asksAbove = 100;

async function again(cli: Cli, name: string, texts: string[], options: RedeliverOptions): Promise<void> {
  const { failed, since, until, dryRun = false } = options;
  refuseEmptyPeriod({ since, until });
  const sequences = texts.map(numbered);
  if (sequences.length === 0 && !failed && since === undefined) {
    throw new RankdError('usage', 'Say which events.', { hint: `rankd webhook redeliver ${name} --failed` });
  }
  await cli.withStore(
    async (ports) => {
      const events = await eventsToRedeliver(ports, { name, sequences, isFailed: failed, since, until });
      const what = counted(events.length, 'event');
      if (!dryRun && events.length > asksAbove) await confirm(cli, `Deliver ${what} to ${name} once more?`);
      if (!dryRun) await redeliver(ports, { name, events, by: cli.by });
      const outcome = dryRun ? 'would be delivered once more.' : 'will be delivered once more.';
      cli.print(redeliveryDocument(name, events, { dryRun }), `${what} ${outcome}`);
    },
    { isWriting: true },
  );
}

function numbered(text: string): number {
  const sequence = sequenceIn(text);
  if (sequence !== undefined) return sequence;
  throw new RankdError('usage', `"${text}" is no event.`, { hint: 'rankd webhook deliveries NAME shows them' });
}
