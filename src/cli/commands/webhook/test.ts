import type { Command } from 'commander';
import type { Outcome } from '../../../core/webhooks/progress.ts';
import { webhookTestDocument } from '../../../usecases/documents/webhook.ts';
import { type TestOutcome, testWebhook } from '../../../usecases/webhooks/try-webhook.ts';
import type { Cli } from '../../cli.ts';
import { ExitCode } from '../../output/errors.ts';
import { examples } from '../../output/help.ts';
import { whileWaiting } from '../../output/terminal.ts';
import { nameArgument, sendingOf } from './input.ts';

export function testCommand(webhook: Command, cli: Cli): void {
  webhook
    .command('test')
    .description('send one test event; ends with 5 if the target says no, and 69 if it cannot be reached')
    .argument(...nameArgument)
    .addHelpText('after', examples('rankd webhook test staff-log'))
    .action((name: string) => test(cli, name));
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
  if (outcome.kind === 'delivered') return `${name}: the target took the test event (${outcome.status}, ${ms} ms).`;
  return `${name}: ${shown} did not take the test event: ${outcome.error} (${ms} ms).`;
}

export function exitCodeOf(outcome: Outcome): number {
  if (outcome.kind === 'delivered') return 0;
  return outcome.status === undefined ? 69 : 5;
}
