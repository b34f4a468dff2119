import type { Command } from 'commander';
import type { Migration } from '../../ports/index.ts';
import { checkDatabase, migrateDatabase } from '../../usecases/database/database.ts';
import { databaseCheckDocument, migrationDocument } from '../../usecases/documents/database.ts';
import { verifyAudit } from '../../usecases/history/verify-audit.ts';
import type { Cli } from '../cli.ts';
import { ExitCode } from '../output/errors.ts';
import { examples } from '../output/help.ts';
import { facts, table } from '../output/table.ts';
import { whileWorking } from '../output/terminal.ts';
import { hasRetention } from './audit/verify.ts';

export function databaseCommands(program: Command, cli: Cli): void {
  const database = program
    .command('db')
    .description('the database')
    .addHelpText('after', examples('rankd db check', 'rankd db migrate --dry-run'));
  database
    .command('check')
    .description('read all of it and show what is wrong; ends with 5 if anything is; works while a daemon runs')
    .addHelpText('after', examples('rankd db check', 'rankd db check --json'))
    .action(() => check(cli));
  database
    .command('migrate')
    .description(
      'bring it to the schema of this rankd, also while a daemon runs; SQLite stores a copy of it first, for PostgreSQL the line for a dump is shown. Without a daemon, every command does this automatically',
    )
    .option(
      '--dry-run',
      'try it and leave the database as it is: SQLite migrates and checks a copy, PostgreSQL takes the migration back',
    )
    .addHelpText('after', examples('rankd db migrate --dry-run', 'rankd db migrate'))
    .action(({ dryRun = false }: { dryRun?: boolean }) => migrate(cli, dryRun));
}

async function check(cli: Cli): Promise<void> {
  const verified = () => cli.withStore((ports) => verifyAudit(ports, { hasRetention: () => hasRetention(cli) }));
  const readAudit = () => whileWorking(cli.line, 'reading the audit', verified);
  const verdict = await whileWorking(cli.line, 'reading the database', () => checkDatabase(cli.operations, readAudit));
  const document = databaseCheckDocument(verdict);
  const rows = verdict.checks.map(({ name, ok, detail }) => [ok ? 'ok' : 'FAIL', name, detail]);
  cli.print(document, table(['', 'check', ''], rows, { wrapsLast: true }));
  if (document.ok) return;
  cli.say(`try: ${verdict.isAuditBroken ? 'rankd audit verify' : verdict.mend}`);
  throw new ExitCode(5);
}

async function migrate(cli: Cli, dryRun: boolean): Promise<void> {
  const migrated = () => migrateDatabase(cli.operations, { dryRun, advise: (advice) => cli.say(advice) });
  const migration = await whileWorking(cli.line, 'migrating', migrated);
  if (!dryRun && migration.from > 0 && migration.from < migration.to) await tellMigration(cli, migration);
  const document = migrationDocument(migration, dryRun);
  cli.print({ migration: document }, facts({ ...document, dryRun: null }));
  if (migration.from === migration.to) cli.say('The database has the newest schema already; there is nothing to do.');
  else if (migration.note !== undefined) cli.say(migration.note);
}

async function tellMigration(cli: Cli, migration: Migration): Promise<void> {
  cli.onMigrated(migration);
  if (!(await cli.operations.isDaemonRunning())) return;
  cli.say(
    'If the daemon that runs here is too old for this schema, it finishes what runs and stops. Start this rankd then.',
  );
}
