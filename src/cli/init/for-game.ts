import { existsSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { isRankdError } from '../../base/errors.ts';
import type { NewFile } from '../../base/files.ts';
import type { Config } from '../../config/config.ts';
import type { Cli } from '../cli.ts';
import { type GameScripts, readGameScripts } from '../game/game-scripts.ts';
import { configured, type GameValues } from '../game/game-values.ts';
import { type Model, modelFile, modelOf, systemNamed } from '../game/models.ts';
import { asGameUrl } from '../input/arguments.ts';
import { ask } from './questions.ts';

/** What goes into the game. */
export interface ForGame {
  /** Where it reaches rankd; `undefined`: nowhere yet. */
  url: string | undefined;
  /** Commands for its admin system. */
  system: Model | undefined;
}

export interface ForGameOptions {
  url?: string;
  system?: string;
  force?: boolean;
}

/** What goes into the game, as the flags say, the configuration, or the person at the terminal. */
export async function requestForGame(
  { io }: Cli,
  options: ForGameOptions,
  { server }: Pick<Config, 'server'>,
): Promise<ForGame> {
  const game = readGameScripts(io.packageDir);
  const asked = options.system === undefined ? undefined : systemNamed(game, options.system);
  const url = options.url ?? server.publicUrl ?? (io.isTerminal ? await ask(io, urlQuestion) : undefined);
  if (asked !== undefined || url === undefined || !io.isTerminal) return { url, system: asked };
  return { url, system: await ask(io, systemQuestion(game)) };
}

const urlQuestion = {
  question: 'Public address, such as https://rankd.example.com (Enter: none yet): ',
  parse: (text: string) => (text === '' ? undefined : asGameUrl(text)),
};

function systemQuestion(game: GameScripts) {
  return {
    question: `Commands for which admin system of your game: ${[...game.systems.keys()].join(', ')}, or none? [Chat] `,
    preset: 'Chat',
    parse: (text: string) => {
      try {
        return text.toLowerCase() === 'none' ? undefined : systemNamed(game, text);
      } catch (error) {
        if (!isRankdError(error, 'not_found')) throw error;
        throw new InvalidArgumentError(error.message);
      }
    },
  };
}

export interface GameModels {
  /** Each with its file. */
  written: Array<Model & { file: NewFile }>;
  /** Names of files that were there already. */
  leftOut: string[];
}

/** The models, as few as there are places for them. Whatever has the name of one already stays, unless that is to be forced. */
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
