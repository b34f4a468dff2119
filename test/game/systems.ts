import { readdirSync, readFileSync } from 'node:fs';
import { pluginsOf } from '../../src/cli/game-models.ts';
import type { Clock } from '../../src/ports/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Game, type GameOptions, type GamePlayer, type GameScript } from './game.ts';
import { secret, source } from './scene.ts';

type Kind = 'promote' | 'demote' | 'setrank' | 'suspend' | 'unsuspend';

export interface System {
  name: string;
  /** The loader in `systems` that simulates the system, or loads the real Cmdr. */
  loader: string;
  scripts: () => GameScript[];
  typed: (kind: Kind) => string;
  /** The settings, besides the address, that the system needs in Config. */
  config?: GameConfig;
}

const modules = readdirSync(new URL('../../src/game/Rankd', import.meta.url))
  .filter((file) => file !== 'init.luau')
  .map((file) => file.replace('.luau', ''));
const below = ['ServerScriptService'];
const plugins = pluginsOf(new URL('../../src/game', import.meta.url).pathname);
const pluginsIn = (folder: string, path: string[]): GameScript[] =>
  (plugins.get(folder) ?? []).map(({ name, class: kind, source }) => ({ class: kind, path: [...path, name], source }));

const cmdrFolder = new URL('../../node_modules/@rbxts/cmdr/Cmdr/', import.meta.url);
const cmdrModule = (file: string): GameScript => ({
  class: 'ModuleScript',
  path: [...below, 'Cmdr', ...file.replace(/(\/?init)?\.lua$/, '').split('/')].filter((part) => part !== ''),
  source: readFileSync(new URL(file, cmdrFolder), 'utf8'),
});
/** Returns the modules of Cmdr that the tests need, without its built-in commands, its client and most of its types. */
const cmdrServer = (): GameScript[] => [
  ...['init.lua', 'Initialize.lua', 'CreateGui.lua'].map(cmdrModule),
  { class: 'Folder', path: [...below, 'Cmdr', 'BuiltInCommands'] },
  { class: 'Folder', path: [...below, 'Cmdr', 'CmdrClient'] },
  { class: 'Folder', path: ['StarterGui', 'Cmdr'] },
  ...readdirSync(new URL('Shared', cmdrFolder)).map((file) => cmdrModule(`Shared/${file}`)),
  ...['Player', 'PlayerId', 'Primitives', 'Team'].map((type) => cmdrModule(`BuiltInTypes/${type}.lua`)),
];
const names: Record<Kind, string> = {
  ...{ promote: 'promote', demote: 'demote', setrank: 'setgrouprank' },
  ...{ suspend: 'groupsuspend', unsuspend: 'groupunsuspend' },
};

export const systems: readonly System[] = [
  {
    name: 'Basic Admin Essentials',
    loader: 'basic-admin.luau',
    scripts: () => pluginsIn('BasicAdmin', [...below, 'Basic Admin Essentials', 'Configuration', 'Plugins']),
    typed: (kind) => `:${kind}`,
  },
  {
    name: 'Adonis',
    loader: 'adonis.luau',
    scripts: () => pluginsIn('Adonis', [...below, 'Adonis_Loader', 'Config', 'Plugins']),
    typed: (kind) => `:${names[kind]}`,
  },
  {
    name: 'HD Admin',
    loader: 'hd-admin.luau',
    scripts: () => [
      ...pluginsIn('HDAdmin', [...below, 'HD Admin', 'CustomFeatures', 'Server', 'Modules']),
      { class: 'ModuleScript', path: ['ReplicatedStorage', 'HDAdminSetup'], source: loader('hd-admin-setup.luau') },
    ],
    typed: (kind) => `;${kind}`,
  },
  {
    name: 'Cmdr',
    loader: 'cmdr.luau',
    scripts: () => [...cmdrServer(), ...pluginsIn('Cmdr', [...below, 'RankdCommands'])],
    typed: (kind) => kind,
    config: { rankers: '{ 1002 }' },
  },
  {
    name: 'the chat',
    loader: 'chat.luau',
    scripts: () => pluginsIn('Chat', below),
    typed: (kind) => `/${kind}`,
    config: { rankers: '{ 1002 }' },
  },
];

export function systemNamed(name: string): System {
  const found = systems.find((one) => one.name === name);
  if (found === undefined) throw new Error(`there is no system ${name}`);
  return found;
}

function loader(file: string): string {
  return readFileSync(new URL(`systems/${file}`, import.meta.url), 'utf8');
}

/** Settings in Config, as Luau source. */
export type GameConfig = Partial<
  Record<
    | ('url' | 'secret' | 'groupId' | 'minGroupRank' | 'rankers' | 'allowSelf' | 'allowEveryone' | 'maxTargets')
    | ('minNameLength' | 'privateServers' | 'announce'),
    string | number | boolean
  >
>;

export interface SystemOptions extends Omit<Partial<GameOptions>, 'serve' | 'clock'>, Pick<GameOptions, 'serve'> {
  config?: GameConfig;
  configSource?: string;
  without?: string[];
  /** Data for the loader, in addition to the default levels, which make only Bob an admin. */
  given?: object;
  clock?: Clock;
}

/**
 * Starts a game with the admin system, rankd's plugins for it, and the players Ann (1001), Bob (1002) and Cid (1003).
 */
export async function openSystem(system: System, options: SystemOptions): Promise<SystemScene> {
  const { config, configSource, without = [], given = {}, clock = new ManualClock(), scripts, ...world } = options;
  const rankd = rankdScripts(below, configSource ?? configured({ ...system.config, ...config }));
  const game = await Game.start({
    clock,
    secrets: { rankd: secret },
    users: { offline: 2001, ann: 1001, bob: 1002, cid: 1003 },
    players: ['Ann', 'Bob', 'Cid'].map((name, index): GamePlayer => ({ id: 1001 + index, name, team: 'Red' })),
    ...world,
    scripts: [
      ...rankd.filter(({ path }) => !path.some((name) => without.includes(name))),
      ...(scripts ?? system.scripts()),
    ],
  });
  const scene = new SystemScene(game, clock, system);
  await scene.run(loader(system.loader), { levels: { Bob: 2 }, ...given });
  return scene;
}

/** Returns the module Rankd and the modules below it. `folder` is the path of its parent, starting with the service. */
function rankdScripts(folder: string[], config: string): GameScript[] {
  return [
    { class: 'ModuleScript', path: [...folder, 'Rankd'], source: source('Rankd/init.luau') },
    { class: 'ModuleScript', path: [...folder, 'Rankd', 'Config'], source: config },
    ...modules.map(
      (name): GameScript => ({
        class: 'ModuleScript',
        path: [...folder, 'Rankd', name],
        source: source(`Rankd/${name}.luau`),
      }),
    ),
  ];
}

function configured(config: GameConfig): string {
  const all: GameConfig = { url: '"https://rankd.example.com"', ...config };
  return Object.entries(all).reduce((text, [name, value]) => {
    const line = new RegExp(`^\\t${name} = .*,$`, 'm');
    if (!line.test(text)) throw new Error(`Config has no ${name}`);
    return text.replace(line, () => `\t${name} = ${value},`);
  }, source('Config.luau'));
}

export class SystemScene implements AsyncDisposable {
  readonly game: Game;
  readonly clock: Clock;

  readonly #system: System;

  constructor(game: Game, clock: Clock, system: System) {
    this.game = game;
    this.clock = clock;
    this.#system = system;
  }

  /** Adds Rankd to the folder with this path, which starts with the service. */
  mountRankd(folder: string[]): Promise<void> {
    return this.game.mount(rankdScripts(folder, configured(this.#system.config ?? {})));
  }

  run<T>(script: string, given: unknown = false): Promise<T> {
    const done = this.game.run<T>(script, given);
    return this.clock instanceof ManualClock ? this.clock.passUntil(done) : done;
  }

  /**
   * Types a message as the player. Resolves with the last message shown to any player, or `undefined` if none is shown
   * within `seconds`.
   */
  async type(player: string, text: string, seconds = 1000): Promise<string | undefined> {
    const shown = this.game.output.length;
    await this.run(
      `local given = ...
      local world = RobloxWorld.world
      local latest = os.clock() + given.seconds
      world.shown = nil
      task.spawn(_G.hear, game:GetService("Players")[given.player], given.text)
      while (world.shown == nil or string.find(world.shown, "…$")) and os.clock() < latest do
        RobloxWorld.untilShown(latest - os.clock())
      end
      return true`,
      { player, text, seconds },
    );
    const lines = this.game.output.slice(shown).filter((line) => line.startsWith('client '));
    return lines.at(-1)?.replace(/^client \w+ /, '');
  }

  /** The body and the path of each POST request. */
  get asked(): Array<Record<string, unknown> & { path: string }> {
    return this.game.requests
      .filter(({ method }) => method === 'POST')
      .map(({ url, body }) => ({ ...JSON.parse(body), path: new URL(url).pathname }));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.game[Symbol.asyncDispose]();
  }
}
