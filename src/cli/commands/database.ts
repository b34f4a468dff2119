import { createWriteStream, existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { asRankdError, isRankdError, RankdError } from '../../base/errors.ts';
import { asFileError, ScratchDirectory } from '../../base/files.ts';
import type { Backup, BackupTarget, Migration } from '../../ports/index.ts';
import {
  backUpDatabase,
  backupDocument,
  checkDatabase,
  databaseCheckDocument,
  migrateDatabase,
  migrationDocument,
  recordBackup,
  restoreBackup,
  restoreDocument,
} from '../../usecases/database/database.ts';
import { verifyAudit } from '../../usecases/history/verify-audit.ts';
import type { Cli } from '../cli.ts';
import { argument, command, commandGroup, flag } from '../command.ts';
import { namingDaemon } from '../daemon-here.ts';
import { confirm } from '../input/confirm.ts';
import { ExitCode } from '../output/errors.ts';
import { facts, table } from '../output/table.ts';
import { whileWorking } from '../output/terminal.ts';
import { hasRetention } from './audit.ts';

export const databaseCommands = commandGroup({
  name: 'db',
  about: 'the database',
  examples: ['rankd db check', 'rankd db migrate --dry-run'],
  commands: [
    command({
      name: 'check',
      about: 'check the whole database for errors; exits with 5 if it finds any; works while a daemon is running',
      examples: ['rankd db check', 'rankd db check --json'],
      run: check,
    }),
    command({
      name: 'migrate',
      about:
        "migrate the database to this rankd's schema, even while a daemon is running; on SQLite, rankd makes a copy first; on PostgreSQL it makes none, and --dry-run prints the command for a dump. If no daemon is running, every command migrates automatically",
      options: {
        dryRun: flag(
          '--dry-run',
          'try the migration without changing the database: on SQLite on a copy, on PostgreSQL in a transaction that is rolled back',
        ),
      },
      examples: ['rankd db migrate --dry-run', 'rankd db migrate'],
      run: migrate,
    }),
  ],
});

async function check(cli: Cli): Promise<void> {
  const verified = () => cli.withStore((ports) => verifyAudit(ports, { hasRetention: () => hasRetention(cli) }));
  const readAudit = () => whileWorking(cli.line, 'reading the audit', verified);
  const verdict = await whileWorking(cli.line, 'reading the database', () => checkDatabase(cli.operations, readAudit));
  const document = databaseCheckDocument(verdict);
  const rows = verdict.checks.map(({ name, ok, detail }) => [ok ? 'ok' : 'FAIL', name, detail]);
  cli.print(document, table(['', 'check', ''], rows, { wrapsLast: true }));
  if (document.ok) return;
  cli.say(`try: ${verdict.isAuditBroken ? 'rankd audit verify' : verdict.fix}`);
  throw new ExitCode(5);
}

async function migrate(cli: Cli, { dryRun }: { dryRun: boolean }): Promise<void> {
  const migrated = () => migrateDatabase(cli.operations, { dryRun });
  const migration = await whileWorking(cli.line, 'migrating', migrated);
  if (!dryRun && migration.from > 0 && migration.from < migration.to) await reportMigration(cli, migration);
  const document = migrationDocument(migration, dryRun);
  cli.print({ migration: document }, facts({ ...document, dryRun: null }));
  if (migration.from === migration.to) cli.say('The database already has the newest schema; there is nothing to do.');
  else if (migration.note !== undefined) cli.say(migration.note);
}

async function reportMigration(cli: Cli, migration: Migration): Promise<void> {
  cli.onMigrated(migration);
  if (!(await cli.operations.isDaemonRunning())) return;
  cli.say(
    'If the running daemon is too old for this schema, it finishes its current requests and stops. Then start this rankd.',
  );
}

export const backupCommand = command({
  name: 'backup',
  about:
    'copy the database to a file, even while the daemon is running; the file appears only once the copy is complete and checked. The Roblox key and the simulated group are not in it',
  args: [argument('<file>', 'the file to write, or - for standard output')],
  options: { force: flag('--force', 'replace the file if it exists') },
  examples: [
    'rankd backup rankd-backup.db',
    'rankd backup --force /mnt/usb/rankd-backup.db',
    "rankd backup - | ssh me@elsewhere 'cat > rankd-backup.db'",
  ],
  run: (cli, file, { force }) => (file === '-' ? stream(cli) : copyTo(cli, { file, mayReplace: force })),
});

async function copyTo(cli: Cli, { file, mayReplace }: BackupTarget): Promise<void> {
  const to = resolve(cli.io.cwd, file);
  const backup = await whileWorking(cli.line, 'copying the database', () =>
    backUpDatabase(cli.operations, { file: to, mayReplace }),
  );
  await record(cli, backup, to);
  const document = backupDocument({ file: to, ...backup });
  cli.print({ backup: document }, facts(document));
  await sayGroupIsExcluded(cli);
}

async function stream(cli: Cli): Promise<void> {
  if (cli.io.stdoutIsTerminal) {
    throw new RankdError('usage', "A backup can't be printed to a terminal.", { hint: 'rankd backup rankd-backup.db' });
  }
  const send = (chunk: Uint8Array) => cli.io.stdoutBytes(chunk).catch(throwIncomplete);
  const backup = await backUpDatabase(cli.operations, { send });
  cli.say(`${backup.bytes} bytes were written.`);
  await record(cli, backup);
  await sayGroupIsExcluded(cli);
}

/** Only warns if the backup can't be recorded, because the database may be on a read-only disk. */
async function record(cli: Cli, backup: Backup, file?: string): Promise<void> {
  try {
    await recordBackup(backup, { file, by: cli.by }, (work) => cli.withStore(work));
  } catch (error) {
    cli.say(`The backup is complete, but rankd could not record when it was made: ${asRankdError(error).message}`);
  }
}

async function sayGroupIsExcluded(cli: Cli): Promise<void> {
  if (!readdirSync(cli.dataDir).some((name) => name.startsWith('simulated-group'))) return;
  if (!(await cli.simulates())) return;
  cli.say('The simulated group stands in for Roblox and is not part of the backup.');
}

function throwIncomplete(cause: Error): never {
  throw new RankdError('store_unavailable', `The backup could not be written completely: ${cause.message}.`, {
    hint: 'delete the incomplete file, check where the output goes, then run the command again',
    cause,
  });
}

export const restoreCommand = command({
  name: 'restore',
  about:
    'replace the database with a backup, while the daemon is stopped; rankd saves the previous database next to it',
  args: [argument('<file>', 'a file that `rankd backup` made, or - for standard input')],
  options: { dryRun: flag('--dry-run', 'only check the file; works while a daemon is running') },
  examples: [
    'rankd restore --dry-run rankd-backup.db',
    'rankd restore rankd-backup.db',
    "ssh me@elsewhere 'cat rankd-backup.db' | rankd restore -y -",
  ],
  run: (cli, file, { dryRun }) =>
    file === '-' ? restoreInput(cli, dryRun) : restore(cli, { name: file, file: resolve(cli.io.cwd, file), dryRun }),
});

/** Saves the input to a private file first, because the backup must be complete and intact before rankd uses it. */
async function restoreInput(cli: Cli, dryRun: boolean): Promise<void> {
  const { dataDir, io } = cli;
  if (io.stdinIsTerminal) {
    throw new RankdError('usage', "A backup can't be typed on a terminal.", {
      hint: 'rankd restore rankd-backup.db',
    });
  }
  using scratch = new ScratchDirectory(existsSync(dataDir) ? dataDir : tmpdir());
  const file = join(scratch.path, 'standard-input.db');
  await pipeline(io.stdinBytes(), createWriteStream(file, { flags: 'wx', mode: 0o600 })).catch((cause) => {
    throw asFileError(cause, file);
  });
  await restore(cli, { name: 'standard input', file, dryRun }).catch((error) => {
    throw isRankdError(error) ? renamed(error, file, 'standard input') : error;
  });
}

interface RequestedRestore {
  /** The name to show in messages. */
  name: string;
  file: string;
  dryRun: boolean;
}

async function restore(cli: Cli, { name, file, dryRun }: RequestedRestore): Promise<void> {
  const { dataDir, by, operations } = cli;
  const show = <T>(what: string, step: () => Promise<T>) => whileWorking(cli.line, what, step);
  const confirmed = async () =>
    confirm(
      cli,
      (await operations.exists())
        ? `Replace the database in ${dataDir} with ${name}?`
        : `There is no database in ${dataDir} yet. Restore ${name} there?`,
    );
  const steps = { confirm: confirmed, show };
  const restored = await restoreBackup(operations, { file, by, dryRun }, steps).catch(async (error) => {
    throw await namingDaemon(dataDir, error);
  });
  if (!restored.hasDigest) cli.warn(noDigest(name));
  const document = restoreDocument(restored, { file: name === 'standard input' ? '-' : file, dryRun });
  cli.print({ restore: document }, facts({ ...document, dryRun: null }));
  if (!dryRun) {
    cli.say(`The backup is restored in ${dataDir}; the next daemon there uses it.`);
    cli.say(
      'Keys revoked since the backup are accepted again, and rank changes made since are not in the history. To see the keys: rankd key list',
    );
    return;
  }
  const isRunning = await operations.isDaemonRunning();
  cli.say(`The backup is sound; nothing was changed.${isRunning ? ' Stop the daemon before you restore it.' : ''}`);
}

function noDigest(name: string): RankdError {
  const message = `${name} has no digest, so rankd may not notice if it is damaged.`;
  return new RankdError('backup_unusable', message, {
    hint: 'prefer a file that `rankd backup` made, if you have one',
  });
}

function renamed({ code, message, hint, cause }: RankdError, file: string, name: string): RankdError {
  return new RankdError(code, message.replaceAll(file, name), {
    ...(hint !== undefined && { hint: hint.replaceAll(file, name) }),
    cause,
  });
}
