import type { Command } from 'commander';
import { systemClock } from '../../clock.ts';
import type { AuditEvent } from '../../core/model.ts';
import { duration, wholeNumber } from '../arguments.ts';
import type { Cli } from '../cli.ts';
import { examples } from '../help.ts';
import { table } from '../table.ts';

interface ListOptions {
  limit: number;
  since?: number;
}

export function auditCommands(program: Command, cli: Cli): void {
  const audit = program
    .command('audit')
    .description('what operators, keys and refused callers did')
    .addHelpText('after', examples('rankd audit list --since 24h'));
  audit
    .command('list')
    .description('events, newest first')
    .option('--limit <n>', 'at most this many', wholeNumber(1, 100_000), 20)
    .option('--since <duration>', 'only those of this time, e.g. 24h', duration)
    .addHelpText('after', examples('rankd audit list', 'rankd audit list --since 24h --limit 500 --json'))
    .action((options: ListOptions) => list(cli, options));
}

async function list(cli: Cli, { limit, since }: ListOptions): Promise<void> {
  const filter = { limit, ...(since !== undefined && { since: systemClock.now() - since }) };
  const documents = (await cli.withStore((store) => store.listAudit(filter))).map(eventDocument);
  const rows = documents.map(({ at, by, action, subject, detail }) => [
    at,
    by,
    action,
    subject,
    JSON.stringify(detail),
  ]);
  cli.print({ events: documents }, table(['at', 'by', 'action', 'subject', 'detail'], rows));
  if (documents.length === 0) cli.say('Nothing was recorded in that time.');
  if (documents.length === limit) cli.say(`The newest ${limit} are shown; --limit shows more.`);
}

/** An event as `--json` shows it; times are ISO 8601. */
function eventDocument({ id, at, by, action, subject, detail }: AuditEvent) {
  return { id, at: new Date(at).toISOString(), by, action, subject, detail };
}
