import type { Command } from 'commander';
import { webhookDocument } from '../../../usecases/documents/webhook.ts';
import { removeWebhook } from '../../../usecases/webhooks/edit-webhooks.ts';
import { requireWebhook } from '../../../usecases/webhooks/require-webhook.ts';
import { maxCounted, viewWebhook, viewWebhooks } from '../../../usecases/webhooks/view-webhooks.ts';
import type { Cli } from '../../cli.ts';
import { confirm } from '../../input/confirm.ts';
import { examples } from '../../output/help.ts';
import { facts, table, when } from '../../output/table.ts';
import { nameArgument } from './input.ts';

export function listCommand(webhook: Command, cli: Cli): void {
  webhook
    .command('list')
    .description('all webhooks, and what waits for them')
    .addHelpText('after', examples('rankd webhook list', 'rankd webhook list --json'))
    .action(() => list(cli));
}

async function list(cli: Cli): Promise<void> {
  const documents = (await cli.withStore(viewWebhooks)).map(webhookDocument);
  const rows = documents.map(({ name, kind, state, events, backlog, lastSuccess, target }) => [
    ...[
      name,
      kind,
      state,
      events.join(', ') || '-',
      backlogText(backlog),
      when(lastSuccess === null ? null : Date.parse(lastSuccess)),
      target,
    ],
  ]);
  const columns = ['name', 'kind', 'state', 'events', 'waiting', 'last success', 'target'];
  cli.print({ webhooks: documents }, table(columns, rows));
  if (documents.length === 0) cli.say('There is no webhook.\ntry: rankd webhook add NAME');
}

/** More are not counted. */
function backlogText(backlog: number): string {
  return backlog < maxCounted ? String(backlog) : `${maxCounted} or more`;
}

export function showCommand(webhook: Command, cli: Cli): void {
  webhook
    .command('show')
    .description('one webhook: its state, what waits, and the last error')
    .argument(...nameArgument)
    .addHelpText('after', examples('rankd webhook show staff-log'))
    .action((name: string) => show(cli, name));
}

async function show(cli: Cli, name: string): Promise<void> {
  const document = webhookDocument(await cli.withStore((ports) => viewWebhook(ports, name)));
  cli.print({ webhook: document }, facts({ ...document, backlog: backlogText(document.backlog) }));
}

export function removeCommand(webhook: Command, cli: Cli): void {
  webhook
    .command('remove')
    .description('deliver nothing to the webhook any more, and forget its address')
    .argument(...nameArgument)
    .addHelpText('after', examples('rankd webhook remove staff-log', 'rankd webhook remove staff-log -y'))
    .action((name: string) => remove(cli, name));
}

async function remove(cli: Cli, name: string): Promise<void> {
  await cli.withStore(
    async (ports) => {
      await requireWebhook(ports, name);
      await confirm(cli, `Remove the webhook "${name}", with what waits for it?`);
      await removeWebhook(ports, { name, by: cli.by });
    },
    { isWriting: true },
  );
  cli.print({ removed: name }, `Webhook "${name}" is removed.`);
}
