import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { makeFile, type NewFile, requireRoom, withFiles } from '../../base/files.ts';
import type { Cli } from '../cli.ts';
import { argument, command, commandGroup, flag, option, type ValuesOf } from '../command.ts';
import {
  configured,
  type GameScript,
  gameUrl,
  type Model,
  modelFile,
  modelNamed,
  modelOf,
  readGameScripts,
  standalone,
} from '../game-models.ts';
import { asGameUrl, asGroupId, newFileName, nonEmpty, wholeNumber } from '../input/arguments.ts';
import { table } from '../output/table.ts';

const url = option('--url <url>', 'where games reach rankd (default: server.public_url)', asGameUrl);
const secret = option('--secret <name>', "name of the game's secret that holds the key", nonEmpty, 'rankd');

const writeOptions = {
  url,
  secret,
  group: option('--group <id>', 'id of the group (default: group.id)', asGroupId),
  minRank: option('--min-rank <rank>', 'lowest group rank that can use the commands', wholeNumber(1, 255)),
  out: option('--out <dir>', 'the folder for the files (default: the current one)', nonEmpty),
  luau: flag('--luau', 'write scripts for Rojo instead of models'),
  force: flag('--force', 'overwrite existing files, and keep the old ones with .old added to their names'),
};

export const gameCommands = commandGroup({
  name: 'game',
  about: 'files for your game: the Rankd module, commands for its admin system, and scripts that change ranks',
  examples: ['rankd game list', 'rankd game write', 'rankd game write Adonis'],
  commands: [
    command({
      name: 'list',
      about: 'every model, and where it goes in the game',
      examples: ['rankd game list', 'rankd game list --json'],
      run: list,
    }),
    command({
      name: 'write',
      about: 'write models to insert in Roblox Studio (Insert from File): Rankd, and the ones that you name',
      args: [argument('[model...]', 'admin systems and ranking scripts, named as in `rankd game list`')],
      options: writeOptions,
      examples: [
        'rankd game write',
        'rankd game write Adonis --url https://rankd.example.com',
        'rankd game write gamepass-rank',
        'rankd game write --luau',
      ],
      run: write,
    }),
  ],
});

export const scriptCommand = command({
  name: 'script',
  about: "print the module that your game's own scripts use to change ranks; it contains your address",
  options: {
    url,
    secret,
    out: option('--out <file>', 'write it to this new file, instead of printing it', newFileName),
  },
  examples: ['rankd script --url https://rankd.example.com', 'rankd script --out Rankd.luau'],
  run: script,
});

function list(cli: Cli): void {
  const { rankd, systems, pieces } = readGameScripts(cli.io.packageDir);
  const models = [
    modelOf(rankd.name, [rankd]),
    ...[...systems, ...pieces].map(([name, scripts]) => modelOf(name, scripts)),
  ].map((model) => gameModelDocument(model, model.scripts.flatMap(namesIn)));
  const rows = models.map(({ name, place, typed }) => [name, place, typed ?? '-']);
  cli.print({ models }, table(['NAME', 'GOES INTO', 'TYPED IN THE GAME'], rows));
}

function namesIn({ name, class: kind, children }: GameScript): string[] {
  return [...(kind === 'Folder' ? [] : [name]), ...children.flatMap(namesIn)];
}

async function write(cli: Cli, asked: string[], options: ValuesOf<typeof writeOptions>): Promise<void> {
  const all = readGameScripts(cli.io.packageDir);
  const others = asked.filter((name) => name.toLowerCase() !== all.rankd.name.toLowerCase());
  const systems = [...new Map(others.map((name) => modelNamed(all, name)).map((one) => [one.name, one])).values()];
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
  // the user may have edited the existing module before adding a system
  const keepsModule = systems.length > 0 && !options.force && own.some(({ path }) => existsSync(path));
  if (keepsModule) cli.say(`${rankd.name} already exists in ${folder} and was not changed; --force overwrites it.`);
  const files = [...(keepsModule ? [] : own), ...systems.flatMap((system) => filesOf(folder, system))];
  if (options.luau) for (const { path } of files) mkdirSync(dirname(path), { recursive: true });
  if (!options.force)
    for (const { path } of files)
      requireRoom(path, 'add --force to overwrite it and keep the old one with .old added to its name');
  await withFiles(files, async () => undefined);
  const written = files.map(({ path }) => path);
  cli.print(gameFilesDocument(values, written), written.join('\n'));
  for (const { name, place } of [...(keepsModule ? [] : [rankd]), ...systems]) cli.say(`${name} goes into ${place}.`);
  if (!keepsModule && options.minRank === undefined && systems.some(({ typed }) => typed !== undefined))
    cli.say(
      'Without --min-rank, Chat and Cmdr refuse everyone; in the other admin systems, every admin can change ranks, even a temporary one.',
    );
  const { hostname } = new URL(values.url);
  cli.say(
    `To test in Studio, create a test key (rankd key create try --test) and whitelist your place (rankd whitelist add PLACE --key try). Then, in File > Experience Settings > Security > Secrets, add a secret with the name ${values.secret}, the domain ${hostname} and that key as its value.`,
  );
}

/** Uses Rojo's layout, in which a script with children becomes a folder that contains `init.luau`. */
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

async function script(cli: Cli, options: { url?: string; secret: string; out?: string }): Promise<void> {
  const { config } = await cli.loadConfig();
  const values = { url: gameUrl(options.url, config, 'rankd script'), secret: options.secret };
  const text = standalone(readGameScripts(cli.io.packageDir).rankd, values);
  const { out } = options;
  if (out === undefined) cli.printAsIs(scriptDocument(values, { script: text }), text);
  else {
    const path = resolve(cli.io.cwd, out);
    makeFile({ path, text });
    cli.print(scriptDocument(values, { file: path }), path);
  }
  cli.say('Put it into a ModuleScript named Rankd in ServerScriptService; its first lines explain how to use it.');
}

/** The paths in `files` are absolute. */
function gameFilesDocument<Values extends object>(values: Values, files: readonly string[]) {
  return { ...values, files };
}

function gameModelDocument(
  { name, place, typed }: { name: string; place: string; typed?: string | undefined },
  scripts: readonly string[],
) {
  return { name, place, typed: typed ?? null, scripts };
}

function scriptDocument<Values extends object>(values: Values, made: { script: string } | { file: string }) {
  return { ...values, ...made };
}
