import { existsSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { isRankdError } from '../../base/errors.ts';
import type { NewFile } from '../../base/files.ts';
import { hostAndPort, hostOf, isPrivate, localUrl } from '../../base/net.ts';
import type { Config } from '../../config/config.ts';
import type { Cli } from '../cli.ts';
import {
  configured,
  type GameScripts,
  type GameValues,
  type Model,
  modelFile,
  modelNamed,
  modelOf,
  readGameScripts,
} from '../game-models.ts';
import { asGameUrl } from '../input/arguments.ts';
import { ask } from './credential.ts';

interface ForGame {
  /** rankd's public address; `undefined` if there is none yet. */
  url: string | undefined;
  system: Model | undefined;
}

interface ForGameOptions {
  url?: string;
  system?: string;
  force?: boolean;
}

export async function requestForGame(
  { io }: Cli,
  options: ForGameOptions,
  { server }: Pick<Config, 'server'>,
): Promise<ForGame> {
  const game = readGameScripts(io.packageDir);
  const asked = options.system === undefined ? undefined : modelNamed({ systems: game.systems }, options.system);
  const url = options.url ?? server.publicUrl ?? (io.isTerminal ? await ask(io, urlQuestion) : undefined);
  if (asked !== undefined || url === undefined || !io.isTerminal) return { url, system: asked };
  return { url, system: await ask(io, systemQuestion(game)) };
}

const urlQuestion = {
  question: 'Public address of rankd, such as https://rankd.example.com (Enter for none yet): ',
  parse: (text: string) => (text === '' ? undefined : asPublic(asFullName(asGameUrl(text)))),
};

function asFullName(url: string): string {
  if (/[.:]/.test(new URL(url).hostname)) return url;
  throw new InvalidArgumentError(`${url} needs a full host name, such as rankd.example.com.`);
}

function asPublic(url: string): string {
  const host = hostOf(new URL(url));
  if (!isPrivate(host)) return url;
  throw new InvalidArgumentError(
    `Roblox's servers can't reach ${host}. Type the address of your proxy or tunnel, or press Enter.`,
  );
}

function systemQuestion(game: GameScripts) {
  return {
    question: `Which admin system should get the commands: ${[...game.systems.keys()].join(', ')}, or none? [Chat] `,
    preset: 'Chat',
    parse: (text: string) => {
      try {
        return text.toLowerCase() === 'none' ? undefined : modelNamed({ systems: game.systems }, text);
      } catch (error) {
        if (!isRankdError(error, 'not_found')) throw error;
        throw new InvalidArgumentError(`Type one of ${[...game.systems.keys()].join(', ')}, or none.`);
      }
    },
  };
}

interface GameModels {
  /** The models that the caller has to write, each with its file. */
  written: Array<Model & { file: NewFile }>;
  leftOut: string[];
}

/**
 * Leaves out files that already exist, unless `force` is set. Models with the same destination in the game share one
 * file.
 */
export function gameModels(
  { io }: Cli,
  { url, system }: ForGame,
  values: Omit<GameValues, 'url' | 'secret'>,
  { force = false }: ForGameOptions,
): GameModels {
  if (url === undefined) return { written: [], leftOut: [] };
  const rankd = configured(readGameScripts(io.packageDir).rankd, { ...values, url, secret: 'rankd' });
  const alone = modelOf(rankd.name, [rankd]);
  const models =
    system === undefined
      ? [alone]
      : system.place === alone.place
        ? [modelOf(rankd.name, [rankd, ...system.scripts])]
        : [alone, system];
  const all = models.flatMap((model) => modelFile(io.cwd, model).map((file) => ({ ...model, file })));
  const isTaken = ({ file: { path } }: { file: NewFile }) => !force && existsSync(path);
  return {
    written: all.filter((one) => !isTaken(one)),
    leftOut: all.filter(isTaken).map(({ name }) => `${name}.rbxmx`),
  };
}

interface InitOutcome extends ForGame, GameModels {
  /** The step that makes a daemon use the written files; `undefined` if init performs it itself. */
  start: string | undefined;
  /** `hasPlace` is true if a place is whitelisted for the new key. */
  key: { name: string; hasPlace: boolean } | undefined;
  minGroupRank: number | undefined;
}

export function nextSteps(outcome: InitOutcome, { host, port }: { host: string; port: number }): string {
  const { start, url } = outcome;
  const steps = [
    ...(start === undefined ? [] : [start]),
    url === undefined
      ? 'Give rankd an address that Roblox can reach, with a reverse proxy or a tunnel (docs/hosting.md), and set it as server.public_url in rankd.yaml.'
      : `Point ${url} at ${localUrl(`http://${hostAndPort({ host, port })}`)} with a reverse proxy or a tunnel (docs/hosting.md), then check it: rankd doctor --url`,
    ...keySteps(outcome),
    'In Roblox Studio, File, Experience Settings, Security: turn on Allow HTTP Requests.',
    ...modelSteps(outcome),
    ...lastSteps(outcome),
  ];
  return steps.map((step, index) => `  ${index + 1}. ${step}`).join('\n');
}

function keySteps({ key, url }: InitOutcome): string[] {
  const { name, hasPlace } = key ?? { name: 'my-game', hasPlace: false };
  const domain = url === undefined ? '' : `, for the domain ${new URL(url).hostname}`;
  return [
    ...(key === undefined ? [`Create the game key: rankd key create ${name}`] : []),
    ...(hasPlace ? [] : [`Let your game use the key: rankd whitelist add PLACE --key ${name}`]),
    `On the Creator Dashboard, your experience, Secrets: create a secret named rankd with the game key${domain}.`,
  ];
}

function modelSteps({ url, system, written, leftOut, minGroupRank }: InitOutcome): string[] {
  const minRank = minGroupRank === undefined ? '' : ` --min-rank ${minGroupRank}`;
  const write = `rankd game write${system === undefined ? '' : ` ${system.name}`}${minRank}`;
  if (url === undefined)
    return [
      `Once rankd has that address, write the model for your game, which contains it, and insert it where the command says: ${write}`,
    ];
  return [
    ...(leftOut.length === 0
      ? []
      : [
          leftOut.length === 1
            ? `${leftOut[0]} already existed and was not changed. To overwrite it: ${write} --force`
            : `${leftOut.join(' and ')} already existed and were not changed. To overwrite them: ${write} --force`,
        ]),
    ...written.map(({ place, file }) => `In Roblox Studio, right-click ${place}, Insert from File: ${file.path}`),
  ];
}

function lastSteps({ system, minGroupRank }: InitOutcome): string[] {
  if (system?.typed === undefined) return ['Commands for the admin system of your game: rankd game list'];
  const type = `publish the game, join it, and type: ${system.typed}`;
  return minGroupRank === undefined
    ? [`In the script Config below Rankd, set the lowest rank that may use commands (minGroupRank). Then ${type}`]
    : [
        `${type.replace('publish', 'Publish')} (commands are for members of rank ${minGroupRank} or above: minGroupRank in the script Config below Rankd)`,
      ];
}
