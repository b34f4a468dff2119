import { resolve } from 'node:path';
import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { acquireDaemonLock, isDaemonRunning } from '../../stores/sqlite/files/daemon-lock.ts';
import { examineBackup, restoreBackup } from '../../stores/sqlite/files/restore.ts';
import type { Cli } from '../cli.ts';
import { confirm } from '../input/confirm.ts';
import { facts } from '../output/facts.ts';
import { examples } from '../output/help.ts';
import { whileWorking } from '../output/waiting.ts';

export function restoreCommand(program: Command, cli: Cli): void {
  program
    .command('restore')
    .description(
      'put a backup in the place of the database, with the daemon stopped; the database of before is kept beside it',
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
  const { dataDir, by } = cli;
  const file = resolve(cli.io.cwd, name);
  if (dryRun) {
    const { schema, rows } = await whileWorking(cli.line, 'checking the backup', () => examineBackup(file));
    const document = { file, schema, ...rows, kept: null, dryRun };
    cli.print({ restore: document }, facts({ ...document, dryRun: null }));
    cli.say(
      `The backup is sound; nothing was changed.${(await isDaemonRunning(dataDir)) ? ' Stop the daemon before you restore it.' : ''}`,
    );
    return;
  }
  await using _lock = await acquireDaemonLock(dataDir);
  const { schema, rows } = await whileWorking(cli.line, 'checking the backup', () => examineBackup(file));
  await confirm(cli, `Put ${name} in the place of the database in ${dataDir}?`);
  const restored = await whileWorking(cli.line, 'restoring', () => restoreBackup({ dataDir, file, by }, systemClock));
  const kept = restored ?? null;
  const document = { file, schema, ...rows, kept, dryRun };
  cli.print({ restore: document }, facts({ ...document, dryRun: null }));
  cli.say(
    'Keys that were revoked since the backup are accepted again, changes made since are not in the history: rankd key list',
  );
}
