import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A script for a game, or a folder of them, as Roblox has it. */
export interface GameScript {
  name: string;
  class: 'ModuleScript' | 'Script' | 'Folder';
  source: string;
  children: GameScript[];
}

/** What this package has for games. */
export interface GameScripts {
  /** The module Rankd, with the modules that belong to it below. */
  rankd: GameScript;
  /** The scripts for each admin system, by its name. */
  systems: ReadonlyMap<string, GameScript[]>;
}

/** A file `Name.luau` is the ModuleScript of that name, and `Name.server.luau` a Script, as Rojo has it. */
export function readGameScripts(packageDir: string): GameScripts {
  const folder = join(packageDir, 'dist', 'game');
  const modules = scriptsIn(folder).filter((one) => one.class !== 'Folder');
  const rankd = modules.find(({ name }) => name === 'Rankd');
  if (rankd === undefined) throw new Error(`${folder} has no Rankd.luau`);
  const plugins = scriptsIn(folder).find(({ name }) => name === 'plugins')?.children ?? [];
  return {
    rankd: { ...rankd, children: modules.filter((one) => one !== rankd) },
    systems: new Map(plugins.map(({ name, children }) => [name, children])),
  };
}

function scriptsIn(folder: string): GameScript[] {
  return readdirSync(folder, { withFileTypes: true })
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry): GameScript[] => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return [{ name: entry.name, class: 'Folder', source: '', children: scriptsIn(path) }];
      const [, name, server] = /^(.+?)(\.server)?\.luau$/.exec(entry.name) ?? [];
      if (name === undefined) return [];
      const kind = server === undefined ? 'ModuleScript' : 'Script';
      return [{ name, class: kind, source: readFileSync(path, 'utf8'), children: [] }];
    });
}
