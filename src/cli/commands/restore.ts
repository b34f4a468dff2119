import { resolve } from 'node:path';
import type { Command } from 'commander';
import { restoreBackup } from '../../usecases/database/database.ts';
import { restoreDocument } from '../../usecases/documents/database.ts';
import type { Cli } from '../cli.ts';
import { confirm } from '../input/confirm.ts';
import { namingDaemon } from '../other-daemon.ts';
import { examples } from '../output/help.ts';
import { facts } from '../output/table.ts';
import { whileWorking } from '../output/waiting.ts';

export function restoreCommand(program: Command, cli: Cli): void {
  program
    .command('restore')
    .description(
      'put a backup in the place of the database, with the daemon stopped; the previous database is kept beside it',
    )
    .argument('<file>', 'a file that `rankd backup` made')
    .option('--dry-run', 'only check the file; works beside a running daemon')
    .addHelpText(
      'after',
      examples(
        'rankd restore --dry-run rankd-backup.db',
        'rankd restore rankd-backup.db',
        'rankd restore -y backup.db',
      ),
    )
    .action((file: string, { dryRun = false }: { dryRun?: boolean }) => restore(cli, { file, dryRun }));
}

async function restore(cli: Cli, { file: name, dryRun }: { file: string; dryRun: boolean }): Promise<void> {
  const { dataDir, by, operations } = cli;
  const file = resolve(cli.io.cwd, name);
  const show = <T>(what: string, step: () => Promise<T>) => whileWorking(cli.line, what, step);
  const confirmed = () => confirm(cli, `Put ${name} in the place of the database in ${dataDir}?`);
  const steps = { confirm: confirmed, show };
  const restored = await restoreBackup(operations, { file, by, dryRun }, steps).catch(async (error) => {
    throw await namingDaemon(dataDir, error);
  });
  const document = restoreDocument(restored, { file, dryRun });
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
