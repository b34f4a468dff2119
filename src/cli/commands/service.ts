import { accessSync, chmodSync, constants, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { codeOf, RankdError } from '../../base/errors.ts';
import { asFileError, inWords, renameFile } from '../../base/files.ts';
import type { Cli } from '../cli.ts';
import { command, commandGroup, flag, option } from '../command.ts';
import { facts } from '../output/table.ts';
import { launchd } from '../service/launchd.ts';
import type { ServiceManager, Step } from '../service/service-manager.ts';
import { systemd } from '../service/systemd.ts';
import { taskScheduler } from '../service/task-scheduler.ts';

export const serviceCommands = commandGroup({
  name: 'service',
  about: 'have the system start the daemon, with a systemd unit, a launchd agent or a Windows task',
  examples: ['rankd service print', 'sudo rankd service install', 'sudo rankd service remove'],
  commands: [
    command({
      name: 'print',
      about: 'print the service file, which makes the system start the daemon, with the paths on this machine',
      examples: [
        'rankd service print',
        'rankd service print > rankd.service && systemd-analyze verify ./rankd.service',
      ],
      run: print,
    }),
    command({
      name: 'install',
      about: 'write the service file and load it; the daemon does not start yet',
      options: {
        dir: option('--dir <dir>', 'the folder for the file, instead of the one that the system reads'),
        force: flag('--force', 'replace an existing file with that name'),
      },
      examples: ['sudo rankd service install', 'sudo rankd service install --force'],
      run: install,
    }),
    command({
      name: 'remove',
      about: 'stop the service and remove its file; data and settings stay',
      options: { dir: option('--dir <dir>', 'the folder of the file, instead of the one that the system reads') },
      examples: ['sudo rankd service remove'],
      run: remove,
    }),
  ],
});

function print(cli: Cli): void {
  const manager = managerOf(cli);
  const unit = manager.text(cli);
  cli.printAsIs({ unit }, unit);
  warn(cli, manager);
}

async function install(cli: Cli, { dir, force }: { dir?: string; force: boolean }): Promise<void> {
  const manager = managerOf(cli);
  const { kind, encoding } = manager;
  const unit = manager.text(cli);
  const file = fileOf(cli, dir);
  const current = existsSync(file) ? readUnit(file, encoding) : undefined;
  if (current !== undefined && current !== withByteOrderMark(unit, encoding) && !force) {
    throw new RankdError('already_exists', `${file} is a different ${kind} and was not changed.`, {
      hint: `compare it with \`rankd service print\`, then replace it with --force`,
    });
  }
  const isWritten = current !== withByteOrderMark(unit, encoding);
  if (isWritten) write(cli, { file, unit, dir, force }, manager);
  cli.print(
    { unit: file, written: isWritten },
    facts({ [kind]: file, written: isWritten ? 'yes' : 'no: it is up to date' }),
  );
  if (isWritten) for (const step of manager.register(cli, file)) await runStep(cli, step);
  warn(cli, manager);
  cli.say(await manager.next(cli, file));
}

function readUnit(file: string, encoding: ServiceManager['encoding']): string {
  try {
    return readFileSync(file, encoding);
  } catch (error) {
    throw inWords(error, file);
  }
}

async function remove(cli: Cli, { dir }: { dir?: string }): Promise<void> {
  const manager = managerOf(cli);
  const { kind } = manager;
  const file = fileOf(cli, dir);
  if (!existsSync(file)) {
    throw new RankdError('not_found', `There is no ${kind} for rankd: ${file} does not exist.`, {
      hint: 'name its folder with --dir',
    });
  }
  try {
    accessSync(dirname(file), constants.W_OK);
  } catch (cause) {
    throw new RankdError('no_permission', `This user has no permission to remove ${file}.`, {
      hint: manager.isOwnFolder ? `give this user write access to ${dirname(file)}` : asRoot(cli, 'remove', dir),
      cause,
    });
  }
  for (const step of manager.unregister(cli)) await runStep(cli, step);
  rmSync(file);
  for (const step of manager.afterRemoval ?? []) await runStep(cli, step);
  cli.print({ unit: file, removed: true }, facts({ [kind]: file, removed: 'yes' }));
}

const managers = { systemd, launchd, 'task scheduler': taskScheduler };

function managerOf({ io }: Cli): ServiceManager {
  return managers[io.system.serviceManager];
}

function fileOf(cli: Cli, dir: string | undefined): string {
  const { folder, fileName } = managerOf(cli);
  return join(dir ?? folder(cli), fileName);
}

function write(
  cli: Cli,
  { file, unit, dir, force }: { file: string; unit: string; dir: string | undefined; force: boolean },
  { encoding, isOwnFolder, kind }: ServiceManager,
): void {
  const unfinished = `${file}.unfinished`;
  try {
    if (isOwnFolder) mkdirSync(dirname(file), { recursive: true });
    writeFileSync(unfinished, withByteOrderMark(unit, encoding), { encoding });
    chmodSync(unfinished, 0o644);
    renameFile(unfinished, file);
  } catch (cause) {
    const code = codeOf(cause);
    if (code === 'ENOENT' || code === 'ENOTDIR') {
      const why = dir === undefined ? 'this machine does not seem to use systemd' : `${dir} is not a folder`;
      throw new RankdError('not_found', `There is no folder for ${file}: ${why}.`, {
        hint:
          dir === undefined
            ? `name the folder of its ${kind}s with --dir, or see \`rankd service print\``
            : 'create it, or name a different folder with --dir',
        cause,
      });
    }
    if (code !== 'EACCES' && code !== 'EPERM') throw asFileError(cause, file);
    throw new RankdError('no_permission', `This user does not have permission to write to ${file}.`, {
      hint: isOwnFolder
        ? `give this user write access to ${dirname(file)}`
        : asRoot(cli, force ? 'install --force' : 'install', dir),
      cause,
    });
  }
}

function asRoot({ io }: Cli, does: 'install' | 'install --force' | 'remove', dir: string | undefined): string {
  return `sudo rankd service ${does}${dir === undefined ? '' : ` --dir ${io.system.quote(dir)}`}`;
}

function withByteOrderMark(text: string, encoding: ServiceManager['encoding']): string {
  return encoding === 'utf16le' ? `\ufeff${text}` : text;
}

async function runStep(cli: Cli, { program, args, done, onFailure }: Step): Promise<void> {
  const { execFile } = await import('node:child_process');
  const { env, system } = cli.io;
  const isDone = await promisify(execFile)(program, args, { env }).then(
    () => true,
    () => false,
  );
  const name = system.path.basename(program, '.exe');
  cli.say(isDone ? done : onFailure([name, ...args].map(system.quote).join(' ')));
}

function warn(cli: Cli, { warning }: ServiceManager): void {
  const text = warning?.(cli);
  if (text !== undefined) cli.say(`warning: ${text}`);
}
