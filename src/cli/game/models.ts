import { join } from 'node:path';
import { RankdError } from '../../base/errors.ts';
import type { NewFile } from '../../base/files.ts';
import type { GameScript, GameScripts } from './game-scripts.ts';
import { toModel } from './rbxmx.ts';

/** A model for a game. */
export interface Model {
  name: string;
  scripts: GameScript[];
  /** Where in the game it goes, as Studio's Explorer names it. */
  place: string;
  /** What a player types for a promotion, if it has commands. */
  typed?: string;
}

const told: Record<string, Pick<Model, 'place' | 'typed'>> = {
  Rankd: { place: 'ServerScriptService' },
  BasicAdmin: { place: 'the folder Plugins of your Basic Admin Essentials', typed: ':promote NAME' },
  Adonis: { place: 'Adonis_Loader > Config > Plugins', typed: ':promote NAME' },
  HDAdmin: { place: 'HD Admin > CustomFeatures > Server > Modules', typed: ';promote NAME' },
  Cmdr: { place: 'the folder that you give to Cmdr.Registry:RegisterCommandsIn', typed: 'promote NAME' },
  Chat: { place: 'ServerScriptService', typed: '/promote NAME' },
};

/** The admin systems that there are models for. */
export const systemNames: readonly string[] = Object.keys(told).filter((name) => told[name]?.typed !== undefined);

export function modelOf(name: string, scripts: GameScript[]): Model {
  return { name, scripts, ...(told[name] ?? { place: 'the place that docs/in-game.md says' }) };
}

/** The model for an admin system. Throws `not_found` if there is none. */
export function systemNamed({ systems }: GameScripts, asked: string): Model {
  const [name, scripts] = [...systems].find(([name]) => name.toLowerCase() === asked.toLowerCase()) ?? [];
  if (name !== undefined && scripts !== undefined) return modelOf(name, scripts);
  throw new RankdError(
    'not_found',
    `rankd has no commands for an admin system named ${asked}. It has some for ${[...systems.keys()].join(', ')}.`,
    { hint: 'rankd game list' },
  );
}

export function modelFile(folder: string, { name, scripts }: Model): NewFile[] {
  return [{ path: join(folder, `${name}.rbxmx`), text: toModel(scripts) }];
}
