import { RankdError } from '../../base/errors.ts';
import type { Config } from '../../config/config.ts';
import { asGameUrl, filled } from '../input/arguments.ts';
import type { GameScript } from './game-scripts.ts';
import { withFields } from './luau-text.ts';

/** What is filled into the scripts for a game. */
export interface GameValues {
  /** Where games reach rankd. */
  url: string;
  /** The name of the secret of the game that holds the key. */
  secret: string;
  groupId?: number | undefined;
  /** The least rank in the group with which a player may use the commands. */
  minGroupRank?: number | undefined;
}

export const urlOption = ['--url <url>', 'where games reach rankd (default: server.public_url)', asGameUrl] as const;
export const secretOption = [
  '--secret <name>',
  "name of the game's secret that holds the key",
  filled,
  'rankd',
] as const;

/** Where games reach rankd: as the command line says, or the configuration. `command`: what to type with `--url`. */
export function gameUrl(url: string | undefined, { server }: Pick<Config, 'server'>, command: string): string {
  const known = url ?? server.publicUrl;
  if (known !== undefined) return known;
  throw new RankdError('usage', 'Nothing says where games reach rankd: server.public_url is not set.', {
    hint: `${command} --url https://rankd.example.com, or set server.public_url in rankd.yaml`,
  });
}

/** The module Rankd as one script, which needs no other. */
export function standalone({ source }: GameScript, { url, secret }: GameValues): string {
  return withFields(source, { url, secret });
}

/** The module Rankd with the values in the script Config below it. */
export function configured(rankd: GameScript, values: GameValues): GameScript {
  const children = rankd.children.map((child) =>
    child.name === 'Config' ? { ...child, source: withFields(child.source, { ...values }) } : child,
  );
  return { ...rankd, children };
}
