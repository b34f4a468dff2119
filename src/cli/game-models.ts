import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RankdError } from '../base/errors.ts';
import type { NewFile } from '../base/files.ts';
import { suggest } from '../base/text.ts';
import type { Config } from '../config/config.ts';

export interface Model {
  name: string;
  scripts: GameScript[];
  /** The model's location in the game, as Studio's Explorer names it. */
  place: string;
  /** The command with which a player promotes a member, if the model has commands. */
  typed?: string;
}

const described: Record<string, Pick<Model, 'place' | 'typed'>> = {
  Rankd: { place: 'ServerScriptService' },
  BasicAdmin: { place: 'the Plugins folder of your Basic Admin Essentials', typed: ':promote NAME' },
  Adonis: { place: 'Adonis_Loader > Config > Plugins', typed: ':promote NAME' },
  HDAdmin: { place: 'HD Admin > CustomFeatures > Server > Modules', typed: ';promote NAME' },
  Cmdr: { place: 'the folder that you give to Cmdr.Registry:RegisterCommandsIn', typed: 'promote NAME' },
  Chat: { place: 'ServerScriptService', typed: '/promote NAME' },
};

export const systemNames: readonly string[] = Object.keys(described).filter(
  (name) => described[name]?.typed !== undefined,
);

/** By default, a model goes next to Rankd. */
export function modelOf(name: string, scripts: GameScript[]): Model {
  return { name, scripts, ...(described[name] ?? { place: 'ServerScriptService' }) };
}

/** Finds the model of an admin system or, if `pieces` is given, of a ranking script. Throws `not_found`. */
export function modelNamed(
  { systems, pieces = new Map() }: Pick<GameScripts, 'systems'> & Partial<GameScripts>,
  asked: string,
): Model {
  const all = [...systems, ...pieces];
  const [name, scripts] = all.find(([name]) => name.toLowerCase() === asked.toLowerCase()) ?? [];
  if (name !== undefined && scripts !== undefined) return modelOf(name, scripts);
  const names = all.map(([name]) => name);
  const nearest = suggest(asked, names);
  const question = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
  throw new RankdError(
    'not_found',
    `rankd has no model named ${asked}.${question} The models are ${names.join(', ')}.`,
    {
      hint: 'rankd game list',
    },
  );
}

export function modelFile(folder: string, { name, scripts }: Model): NewFile[] {
  return [{ path: join(folder, `${name}.rbxmx`), text: toModel(scripts) }];
}

export interface GameValues {
  url: string;
  /** The name of the game secret that contains the key. */
  secret: string;
  groupId?: number | undefined;
  minGroupRank?: number | undefined;
}

/**
 * Throws `usage` if neither the command line nor the configuration contains the public address. The hint shows
 * `command`.
 */
export function gameUrl(url: string | undefined, { server }: Pick<Config, 'server'>, command: string): string {
  const known = url ?? server.publicUrl;
  if (known !== undefined) return known;
  throw new RankdError('usage', 'rankd does not know where games reach it: server.public_url is not set.', {
    hint: `${command} --url https://rankd.example.com, or set server.public_url in rankd.yaml`,
  });
}

/** Returns the Rankd module's source, with the values in it, for use as a single script. */
export function standalone({ source }: GameScript, { url, secret }: GameValues): string {
  return withFields(source, { url, secret });
}

/** Sets the values in the Config script below the Rankd module. */
export function configured(rankd: GameScript, values: GameValues): GameScript {
  const children = rankd.children.map((child) =>
    child.name === 'Config' ? { ...child, source: withFields(child.source, { ...values }) } : child,
  );
  return { ...rankd, children };
}

export interface GameScript {
  name: string;
  class: 'ModuleScript' | 'Script' | 'Folder';
  source: string;
  children: GameScript[];
}

export interface GameScripts {
  /** The Rankd module, with its submodules as children. */
  rankd: GameScript;
  /** Keyed by the name of the admin system. */
  systems: ReadonlyMap<string, GameScript[]>;
  /** Ready-made scripts that change ranks, keyed by name. */
  pieces: ReadonlyMap<string, GameScript[]>;
}

/** A file with COMMAND in its name becomes one script per command; the scripts differ only in their names. */
const commands = ['demote', 'promote', 'setrank', 'suspend', 'unsuspend'];

/** Reads `Name.luau` as a ModuleScript and `Name.server.luau` as a Script, as Rojo does. */
export function readGameScripts(packageDir: string): GameScripts {
  const folder = join(packageDir, 'dist', 'game');
  const all = scriptsIn(folder);
  const [rankd, config] = ['Rankd', 'Config'].map((name) => all.find((one) => one.name === name));
  if (rankd === undefined || config === undefined) throw new Error(`${folder} lacks Rankd or Config.luau`);
  const pieces = new Map(scriptsIn(join(folder, 'pieces')).map((script) => [script.name, [script]]));
  return { rankd: { ...rankd, children: [config, ...rankd.children] }, systems: pluginsOf(folder), pieces };
}

export function pluginsOf(folder: string): ReadonlyMap<string, GameScript[]> {
  return new Map(scriptsIn(join(folder, 'plugins')).map(({ name, children }) => [name, children]));
}

function scriptsIn(folder: string): GameScript[] {
  return readdirSync(folder, { withFileTypes: true })
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry): GameScript[] => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return [asScript(entry.name, scriptsIn(path))];
      const [, name, server] = /^(.+?)(\.server)?\.luau$/.exec(entry.name) ?? [];
      if (name === undefined) return [];
      const kind = server === undefined ? 'ModuleScript' : 'Script';
      const source = readFileSync(path, 'utf8');
      const names = name.includes('COMMAND') ? commands.map((command) => name.replace('COMMAND', command)) : [name];
      return names.map((one) => ({ name: one, class: kind, source, children: [] }));
    });
}

/** Turns a folder that contains `init` into that script, with the other scripts as its children. */
function asScript(name: string, children: GameScript[]): GameScript {
  const init = children.find((child) => child.name === 'init');
  if (init === undefined) return { name, class: 'Folder', source: '', children };
  return { ...init, name, children: children.filter((child) => child !== init) };
}

/** Sets values in a script's table, which has one line per value: `name = value,`. Skips `undefined` values. */
function withFields(source: string, fields: Record<string, string | number | undefined>): string {
  return Object.entries(fields).reduce((text, [name, value]) => {
    if (value === undefined) return text;
    const line = new RegExp(`^(\\t${name} = ).*,$`, 'm');
    if (!line.test(text)) throw new Error(`the script has no line for ${name}`);
    return text.replace(line, (_, lead: string) => `${lead}${luauOf(value)},`);
  }, source);
}

/** Formats the value as Luau source. In strings, writes all but a few harmless characters as numeric escapes. */
function luauOf(value: string | number): string {
  if (typeof value === 'number') return String(value);
  const characters = [...Buffer.from(value)].map((byte) => {
    const character = String.fromCharCode(byte);
    return /[\w .,:/@%+-]/.test(character) ? character : `\\${String(byte).padStart(3, '0')}`;
  });
  return `"${characters.join('')}"`;
}

/** Formats a model in Roblox's XML format, for Insert from File in Studio. */
export function toModel(scripts: GameScript[]): string {
  let count = 0;
  const item = ({ name, class: kind, source, children }: GameScript, indent: string): string => {
    count += 1;
    const lines = [
      `<Item class="${kind}" referent="RBX${count}">`,
      '\t<Properties>',
      `\t\t<string name="Name">${escaped(name)}</string>`,
      ...(kind === 'Folder' ? [] : [`\t\t<ProtectedString name="Source">${sectioned(source)}</ProtectedString>`]),
      '\t</Properties>',
    ];
    const below = children.map((child) => item(child, `${indent}\t`));
    return [...lines.map((line) => indent + line), ...below, `${indent}</Item>`].join('\n');
  };
  return `<roblox version="4">\n${scripts.map((script) => item(script, '\t')).join('\n')}\n</roblox>\n`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Wraps the text in CDATA sections, split wherever it contains the end marker. */
function sectioned(text: string): string {
  return `<![CDATA[${text.replaceAll(']]>', ']]]]><![CDATA[>')}]]>`;
}
