import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Command } from 'commander';
import { RankdError } from '../../base/errors.ts';
import type { Cli } from '../cli.ts';
import { examples } from '../output/help.ts';
import { facts } from '../output/table.ts';
import { hiddenPath, nextSteps, unitFor } from '../service/unit.ts';

const unitName = 'rankd.service';
const systemFolder = '/etc/systemd/system';

export function serviceCommands(program: Command, cli: Cli): void {
  const service = program
    .command('service')
    .description('run the daemon as a systemd service: started with the machine, watched and sandboxed')
    .addHelpText('after', examples('rankd service print', 'sudo rankd service install'));
  service
    .command('print')
    .description('print the unit for this machine')
    .addHelpText('after', examples('rankd service print', 'rankd service print | systemd-analyze verify /dev/stdin'))
    .action(() => print(cli));
  service
    .command('install')
    .description('write the unit, make the user rankd and let systemd read it; this does not start it yet')
    .option('--dir <dir>', 'where systemd looks for units', systemFolder)
    .option('--force', 'replace another unit of that name')
    .addHelpText('after', examples('sudo rankd service install', 'sudo rankd service install --force'))
    .action(({ dir, force = false }: { dir: string; force?: boolean }) => install(cli, { dir, force }));
}

function print(cli: Cli): void {
  const unit = unitFor(cli.io);
  cli.printAsIs({ unit }, unit);
  warnOfHiddenPath(cli);
}

async function install(cli: Cli, { dir, force }: { dir: string; force: boolean }): Promise<void> {
  const unit = unitFor(cli.io);
  const file = join(dir, unitName);
  const current = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  if (current !== undefined && current !== unit && !force) {
    throw new RankdError('already_exists', `${file} is another unit and was left as it is.`, {
      hint: `compare it with \`rankd service print\`, then replace it with --force`,
    });
  }
  const isWritten = current !== unit;
  if (isWritten) write(file, unit);
  cli.print(
    { unit: file, written: isWritten },
    facts({ unit: file, written: isWritten ? 'yes' : 'no: it is up to date' }),
  );
  if (isWritten) {
    await makeUser(cli);
    await letSystemdRead(cli);
  }
  warnOfHiddenPath(cli);
  cli.say(await nextSteps(cli));
}

function write(file: string, unit: string): void {
  const unfinished = `${file}.unfinished`;
  try {
    writeFileSync(unfinished, unit);
    chmodSync(unfinished, 0o644);
    renameSync(unfinished, file);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') {
      throw new RankdError('not_found', `There is no folder for ${file}: this machine seems to run without systemd.`, {
        hint: 'name the folder of its units with --dir, or see `rankd service print`',
        cause,
      });
    }
    if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS') {
      throw new RankdError('store_unavailable', `${file} could not be written: ${message}.`, { cause });
    }
    throw new RankdError('no_permission', `This user may not write ${file}.`, {
      hint: 'sudo rankd service install',
      cause,
    });
  }
}

/** The user of the unit, who has the data; one that is there stays as it is. */
async function makeUser(cli: Cli): Promise<void> {
  const user = 'u rankd - "rankd, the rank service of a Roblox group" /var/lib/rankd';
  if (await runs(cli, 'systemd-sysusers', '--inline', user)) cli.say('done: the user rankd');
  else cli.say('systemd made no user: run `useradd --system --home-dir /var/lib/rankd rankd` yourself');
}

async function letSystemdRead(cli: Cli): Promise<void> {
  if (await runs(cli, 'systemctl', 'daemon-reload')) cli.say('done: systemctl daemon-reload');
  else cli.say('systemd did not read it: run `systemctl daemon-reload` yourself');
}

async function runs(cli: Cli, program: string, ...args: string[]): Promise<boolean> {
  const { execFile } = await import('node:child_process');
  return promisify(execFile)(program, args, { env: cli.io.env }).then(
    () => true,
    () => false,
  );
}

function warnOfHiddenPath(cli: Cli): void {
  const path = hiddenPath(cli.io.command);
  if (path === undefined) return;
  cli.say(`warning: the service cannot see ${path}, because it sees no homes and no temporary files
try: put rankd and Node.js where every user can read them, such as /opt/rankd, and run this command from there`);
}
