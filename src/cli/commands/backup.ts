import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { asRankdError, RankdError } from '../../base/errors.ts';
import type { Backup, BackupTarget } from '../../ports/index.ts';
import { backUpDatabase, recordBackup } from '../../usecases/database/database.ts';
import { backupDocument } from '../../usecases/documents/database.ts';
import type { Cli } from '../cli.ts';
import { examples } from '../output/help.ts';
import { facts } from '../output/table.ts';
import { whileWorking } from '../output/terminal.ts';

export function backupCommand(program: Command, cli: Cli): void {
  program
    .command('backup')
    .description(
      'copy the database into a file while the daemon runs; the copy is checked before it gets its name. The Roblox key and the simulated group are not in it',
    )
    .argument('<file>', 'the copy to make, or - for standard output')
    .option('--force', 'replace the file if it exists')
    .addHelpText(
      'after',
      examples(
        'rankd backup rankd-backup.db',
        'rankd backup --force /mnt/usb/rankd-backup.db',
        "rankd backup - | ssh me@elsewhere 'cat > rankd-backup.db'",
      ),
    )
    .action((file: string, { force = false }: { force?: boolean }) =>
      file === '-' ? stream(cli) : copy(cli, { file, mayReplace: force }),
    );
}

async function copy(cli: Cli, { file, mayReplace }: BackupTarget): Promise<void> {
  const to = resolve(cli.io.cwd, file);
  const backup = await whileWorking(cli.line, 'copying the database', () =>
    backUpDatabase(cli.operations, { file: to, mayReplace }),
  );
  await record(cli, backup, to);
  const document = backupDocument({ file: to, ...backup });
  cli.print({ backup: document }, facts(document));
  await sayWhatIsMissing(cli);
}

async function stream(cli: Cli): Promise<void> {
  if (cli.io.stdoutIsTerminal) {
    throw new RankdError('usage', 'A terminal cannot show a database.', { hint: 'rankd backup rankd-backup.db' });
  }
  const send = (chunk: Uint8Array) => cli.io.stdoutBytes(chunk).catch(cutOff);
  const backup = await backUpDatabase(cli.operations, { send });
  cli.say(`${backup.bytes} bytes were written.`);
  await record(cli, backup);
  await sayWhatIsMissing(cli);
}

/** The backup is made, whether or not the database takes the record: it can be on a read-only disk. */
async function record(cli: Cli, backup: Backup, file?: string): Promise<void> {
  try {
    await recordBackup(backup, { file, by: cli.by }, (work) => cli.withStore(work));
  } catch (error) {
    cli.say(`The backup is complete, but rankd could not record when it was made: ${asRankdError(error).message}`);
  }
}

/** The simulated group stands for Roblox, which is in no backup either. */
async function sayWhatIsMissing(cli: Cli): Promise<void> {
  if (!readdirSync(cli.dataDir).some((name) => name.startsWith('simulated-group'))) return;
  if (!(await cli.simulates())) return;
  cli.say('The simulated group stands for Roblox and is not part of the backup.');
}

function cutOff(cause: Error): never {
  throw new RankdError('store_unavailable', `The backup could not be written completely: ${cause.message}.`, {
    hint: 'delete what was written, check where the output goes, then run the command again',
    cause,
  });
}
