import { RankdError } from '../../base/errors.ts';
import { counted } from '../../base/text.ts';
import { sequenceIn } from '../../core/webhooks/webhook.ts';
import { eventsToRedeliver, listDeliveries, redeliver } from '../../usecases/webhooks/view-webhooks.ts';
import { deliveryDocument, redeliveryDocument } from '../../usecases/webhooks/webhook-document.ts';
import type { Cli } from '../cli.ts';
import { argument, command, flag, option, type ValuesOf } from '../command.ts';
import { moment, refuseEmptyPeriod, wholeNumber } from '../input/arguments.ts';
import { confirm } from '../input/confirm.ts';
import { table } from '../output/table.ts';

export const deliveriesCommand = command({
  name: 'deliveries',
  about: 'the outcome of each delivery to a webhook, newest first',
  args: [argument('<name>', 'name of the webhook')],
  options: {
    failed: flag('--failed', 'only those that failed permanently'),
    limit: option('--limit <n>', 'at most this many', wholeNumber(1, 10_000), 50),
  },
  examples: ['rankd webhook deliveries my-bot', 'rankd webhook deliveries my-bot --failed --json'],
  run: list,
});

const redeliverOptions = {
  failed: flag('--failed', 'all that failed permanently'),
  since: option('--since <when>', 'all since then: a time, or a duration such as 1d', moment),
  until: option('--until <when>', 'with --since: only events before that time', moment),
  dryRun: flag('--dry-run', 'only report how many'),
};

export const redeliverCommand = command({
  name: 'redeliver',
  about: 'deliver events again, under the same ids',
  args: [argument('<name>', 'name of the webhook'), argument('[event...]', 'numbers or ids of events')],
  options: redeliverOptions,
  examples: ['rankd webhook redeliver my-bot 4711', 'rankd webhook redeliver my-bot --failed'],
  run: redeliverEvents,
});

async function list(cli: Cli, name: string, { failed, limit }: { failed: boolean; limit: number }): Promise<void> {
  const found = await cli.withStore((ports) => listDeliveries(ports, { name, isFailed: failed, limit }));
  const documents = found.deliveries.map((delivery) => deliveryDocument(delivery, found.workspaceId));
  const rows = documents.map(({ sequence, type, state, tries, status, nextTry, lastTry, error }) => [
    ...[String(sequence), type, state, String(tries), String(status ?? '-'), lastTry, nextTry ?? '-', error ?? ''],
  ]);
  const columns = ['event', 'type', 'state', 'tries', 'status', 'last try', 'next try', 'error'];
  cli.print({ deliveries: documents }, table(columns, rows));
  if (documents.length === 0) cli.say('There are no deliveries.');
}

const confirmAbove = 100;

async function redeliverEvents(
  cli: Cli,
  name: string,
  texts: string[],
  { failed, since, until, dryRun }: ValuesOf<typeof redeliverOptions>,
): Promise<void> {
  refuseEmptyPeriod({ since, until });
  const sequences = texts.map(asSequence);
  if (sequences.length === 0 && !failed && since === undefined) {
    throw new RankdError('usage', 'Name the events to deliver again.', {
      hint: `rankd webhook redeliver ${name} --failed`,
    });
  }
  await cli.withWrites(async (ports) => {
    const events = await eventsToRedeliver(ports, { name, sequences, isFailed: failed, since, until });
    const what = counted(events.length, 'event');
    if (!dryRun && events.length > confirmAbove) await confirm(cli, `Deliver ${what} to ${name} again?`);
    if (!dryRun) await redeliver(ports, { name, events, by: cli.by });
    const outcome = dryRun ? 'would be delivered again.' : 'will be delivered again.';
    cli.print(redeliveryDocument(name, events, { dryRun }), `${what} ${outcome}`);
  });
}

function asSequence(text: string): number {
  const sequence = sequenceIn(text);
  if (sequence !== undefined) return sequence;
  throw new RankdError('usage', `"${text}" is not an event.`, { hint: 'rankd webhook deliveries NAME shows them' });
}
