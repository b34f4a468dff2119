import { createWriteStream, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { isRankdError, RankdError } from '../../base/errors.ts';
import { asFileError, ScratchDirectory } from '../../base/files.ts';
import { restoreBackup } from '../../usecases/database/database.ts';
import { restoreDocument } from '../../usecases/documents/database.ts';
import type { Cli } from '../cli.ts';
import { namingDaemon } from '../daemon-here.ts';
import { confirm } from '../input/confirm.ts';
import { examples } from '../output/help.ts';
import { facts } from '../output/table.ts';
import { whileWorking } from '../output/terminal.ts';

export function restoreCommand(program: Command, cli: Cli): void {
  program
    .command('restore')
    .description(
      'put a backup in the place of the database, with the daemon stopped; the previous database is kept beside it',
    )
    .argument('<file>', 'a file that `rankd backup` made, or - for standard input')
    .option('--dry-run', 'only check the file; works beside a running daemon')
    .addHelpText(
      'after',
      examples(
        'rankd restore --dry-run rankd-backup.db',
        'rankd restore rankd-backup.db',
        "ssh me@elsewhere 'cat rankd-backup.db' | rankd restore -y -",
      ),
    )
    .action((file: string, { dryRun = false }: { dryRun?: boolean }) =>
      file === '-' ? restoreInput(cli, dryRun) : restore(cli, { name: file, file: resolve(cli.io.cwd, file), dryRun }),
    );
}

/** The input is stored in a private file first: it replaces the database only once it is complete and sound. */
async function restoreInput(cli: Cli, dryRun: boolean): Promise<void> {
  const { dataDir, io } = cli;
  if (io.stdinIsTerminal) {
    throw new RankdError('usage', 'A backup cannot be typed.', { hint: 'rankd restore - < rankd-backup.db' });
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

interface Asked {
  /** The name for people. */
  name: string;
  file: string;
  dryRun: boolean;
}

async function restore(cli: Cli, { name, file, dryRun }: Asked): Promise<void> {
  const { dataDir, by, operations } = cli;
  const show = <T>(what: string, step: () => Promise<T>) => whileWorking(cli.line, what, step);
  const confirmed = () => confirm(cli, `Put ${name} in the place of the database in ${dataDir}?`);
  const steps = { confirm: confirmed, show };
  const restored = await restoreBackup(operations, { file, by, dryRun }, steps).catch(async (error) => {
    throw await namingDaemon(dataDir, error);
  });
  if (!restored.hasDigest) cli.warn(noDigest(name));
  const document = restoreDocument(restored, { file: name === 'standard input' ? '-' : file, dryRun });
  cli.print({ restore: document }, facts({ ...document, dryRun: null }));
  if (!dryRun) {
    cli.say(`It is in ${dataDir} now; the next daemon there serves it.`);
    cli.say(
      'Keys that were revoked since the backup are accepted again, changes made since are not in the history: rankd key list',
    );
    return;
  }
  const isRunning = await operations.isDaemonRunning();
  cli.say(`The backup is sound; nothing was changed.${isRunning ? ' Stop the daemon before you restore it.' : ''}`);
}

function noDigest(name: string): RankdError {
  const message = `${name} has no digest, so a changed byte in it may go unnoticed.`;
  return new RankdError('backup_unusable', message, {
    hint: 'prefer a file that `rankd backup` made, if you have one',
  });
}

/** The error with the name that the caller knows in place of the private file. */
function renamed({ code, message, hint, cause }: RankdError, file: string, name: string): RankdError {
  return new RankdError(code, message.replaceAll(file, name), {
    ...(hint !== undefined && { hint: hint.replaceAll(file, name) }),
    cause,
  });
}
