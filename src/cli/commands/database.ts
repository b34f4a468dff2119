import type { Command } from 'commander';
import type { StoreCheck } from '../../ports/index.ts';
import { verifyAudit } from '../../usecases/history/verify-audit.ts';
import type { Cli } from '../cli.ts';
import { ExitCode } from '../exit-code.ts';
import { examples } from '../output/help.ts';
import { facts, table } from '../output/table.ts';
import { whileWorking } from '../output/waiting.ts';
import { counted } from '../output/wording.ts';
import { describeBreak } from './audit/verify.ts';

export function databaseCommands(program: Command, cli: Cli): void {
  const database = program
    .command('db')
    .description('the database file')
    .addHelpText('after', examples('rankd db check', 'rankd db migrate --dry-run'));
  database
    .command('check')
    .description('read all of it and show what is wrong; exit code 5 if something is. Works beside a running daemon')
    .addHelpText('after', examples('rankd db check', 'rankd db check --json'))
    .action(() => check(cli));
  database
    .command('migrate')
    .description('bring it to the schema of this rankd, as every command does automatically; a copy of it is kept')
    .option('--dry-run', 'migrate a copy, check that, and leave the database as it is')
    .addHelpText('after', examples('rankd db migrate --dry-run', 'rankd db migrate'))
    .action(({ dryRun = false }: { dryRun?: boolean }) => migrate(cli, dryRun));
}

async function check(cli: Cli): Promise<void> {
  const checked = () => cli.operations.check();
  const { schema, newestSchema, checks } = await whileWorking(cli.line, 'reading the database', checked);
  const isSound = checks.every((one) => one.ok);
  // Only on the newest schema: to read the audit would migrate an older one.
  if (isSound && schema === newestSchema) checks.push(await checkAudit(cli));
  const rows = checks.map(({ name, ok, detail }) => [ok ? 'ok' : 'FAIL', name, detail]);
  const ok = checks.every((one) => one.ok);
  cli.print({ ok, checks }, table(['', 'check', ''], rows));
  if (ok) return;
  cli.say(`try: ${isSound ? 'rankd audit verify' : 'stop the daemon, then put back a backup: rankd restore FILE'}`);
  throw new ExitCode(5);
}

async function checkAudit(cli: Cli): Promise<StoreCheck> {
  const verified = () => cli.withStore((ports) => verifyAudit(ports));
  const { rows, breaks } = await whileWorking(cli.line, 'reading the audit', verified);
  const [first] = breaks;
  if (first === undefined)
    return { name: 'audit', ok: true, detail: `${counted(rows, 'event')}, each following the one before` };
  return { name: 'audit', ok: false, detail: `broken: ${describeBreak(first)}` };
}

async function migrate(cli: Cli, dryRun: boolean): Promise<void> {
  const { operations } = cli;
  await using _lock = dryRun ? undefined : await operations.lockDaemon();
  const done = await whileWorking(cli.line, 'migrating', () =>
    dryRun ? operations.tryMigration() : operations.migrate(),
  );
  const document = { ...done, dryRun };
  cli.print({ migration: document }, facts({ ...document, dryRun: null }));
  if (done.from === done.to) cli.say('The database has the newest schema already; there is nothing to do.');
  else if (dryRun) cli.say('A copy was migrated and found sound; the database is as it was.');
}
