import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Command } from 'commander';
import { type NewFile, requireRoom, withFiles } from '../../base/files.ts';
import { gameFilesDocument, gameModelDocument } from '../../usecases/documents/game.ts';
import type { Cli } from '../cli.ts';
import {
  configured,
  type GameScript,
  gameUrl,
  type Model,
  modelFile,
  modelOf,
  readGameScripts,
  secretOption,
  systemNamed,
  urlOption,
} from '../game-models.ts';
import { asGroupId, filled, wholeNumber } from '../input/arguments.ts';
import { examples } from '../output/help.ts';
import { table } from '../output/table.ts';

export function gameCommands(program: Command, cli: Cli): void {
  const game = program
    .command('game')
    .description('what goes into your game: the module Rankd, and commands for its admin system')
    .addHelpText('after', examples('rankd game list', 'rankd game write', 'rankd game write Adonis'));
  game
    .command('list')
    .description('every model, and where it goes in the game')
    .addHelpText('after', examples('rankd game list', 'rankd game list --json'))
    .action(() => list(cli));
  game
    .command('write')
    .description('write models for Insert from File in Roblox Studio: Rankd, and each system that you name')
    .argument('[system...]', 'the admin systems of the game, as game list shows them')
    .option(...urlOption)
    .option(...secretOption)
    .option('--group <id>', 'id of the group (default: group.id)', asGroupId)
    .option('--min-rank <rank>', 'lowest rank in the group that may use commands', wholeNumber(1, 255))
    .option('--out <dir>', 'the folder for the files (default: the current one)', filled)
    .option('--luau', 'write scripts for Rojo instead of models')
    .option('--force', 'keep existing files with .old at the end of their names')
    .addHelpText(
      'after',
      examples(
        'rankd game write',
        'rankd game write Adonis --url https://rankd.example.com',
        'rankd game write --luau',
      ),
    )
    .action((systems: string[], options: WriteOptions) => write(cli, systems, options));
}

interface WriteOptions {
  url?: string;
  secret: string;
  group?: number;
  minRank?: number;
  out?: string;
  luau?: boolean;
  force?: boolean;
}

function list(cli: Cli): void {
  const { rankd, systems } = readGameScripts(cli.io.packageDir);
  const models = [modelOf(rankd.name, [rankd]), ...[...systems].map(([name, scripts]) => modelOf(name, scripts))].map(
    (model) => gameModelDocument(model, model.scripts.flatMap(namesIn)),
  );
  const rows = models.map(({ name, place, typed }) => [name, place, typed ?? '-']);
  cli.print({ models }, table(['NAME', 'GOES INTO', 'TYPED IN THE GAME'], rows));
}

function namesIn({ name, class: kind, children }: GameScript): string[] {
  return [...(kind === 'Folder' ? [] : [name]), ...children.flatMap(namesIn)];
}

async function write(cli: Cli, asked: string[], options: WriteOptions): Promise<void> {
  const all = readGameScripts(cli.io.packageDir);
  const others = asked.filter((name) => name.toLowerCase() !== all.rankd.name.toLowerCase());
  const systems = [...new Map(others.map((name) => systemNamed(all, name)).map((one) => [one.name, one])).values()];
  const { config } = await cli.loadConfig();
  const values = {
    url: gameUrl(options.url, config, 'rankd game write'),
    secret: options.secret,
    groupId: options.group ?? config.platform.groupId,
    minGroupRank: options.minRank,
  };
  const filledIn = configured(all.rankd, values);
  const rankd = modelOf(filledIn.name, [filledIn]);
  const folder = resolve(cli.io.cwd, options.out ?? '.');
  const filesOf = options.luau ? sourceFiles : modelFile;
  const own = filesOf(folder, rankd);
  // If a system is added later, the module already exists, and may have been changed.
  const isKept = systems.length > 0 && !options.force && own.some(({ path }) => existsSync(path));
  if (isKept) cli.say(`${rankd.name} is in ${folder} already, and was left as it is; --force writes it anew.`);
  const files = [...(isKept ? [] : own), ...systems.flatMap((system) => filesOf(folder, system))];
  if (options.luau) for (const { path } of files) mkdirSync(dirname(path), { recursive: true });
  if (!options.force) for (const { path } of files) requireRoom(path, 'add --force to keep it with .old at its end');
  await withFiles(files, async () => undefined);
  const written = files.map(({ path }) => path);
  cli.print(gameFilesDocument(values, written), written.join('\n'));
  for (const { name, place } of [...(isKept ? [] : [rankd]), ...systems]) cli.say(`${name} goes into ${place}.`);
}

/** As Rojo has them: a script with others below it is a folder with `init.luau` in it. */
function sourceFiles(folder: string, { name, scripts }: Model): NewFile[] {
  const [first] = scripts;
  if (scripts.length === 1 && first?.name === name && first.children.length > 0) return filesBelow(folder, first);
  return scripts.flatMap((script) => filesBelow(join(folder, name), script));
}

function filesBelow(folder: string, { name, class: kind, source, children }: GameScript): NewFile[] {
  const ending = kind === 'Script' ? '.server.luau' : '.luau';
  const below = children.flatMap((child) => filesBelow(join(folder, name), child));
  if (kind === 'Folder') return below;
  return [
    { path: join(folder, children.length > 0 ? join(name, `init${ending}`) : name + ending), text: source },
    ...below,
  ];
}
