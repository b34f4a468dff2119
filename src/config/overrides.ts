import type { Layer } from './layer.ts';
import type { Problem } from './problem.ts';
import { type Setting, settings } from './settings.ts';
import { otherVariables, unknownSetting, unknownVariable } from './unknown-setting.ts';

/** Settings from the command line, by path: `{ 'server.port': '8080' }`. */
export function flagLayer(flags: Record<string, string>, folder: string): Layer {
  const known = new Set(settings.map(({ path }) => path));
  const unknown = Object.keys(flags).filter((path) => !known.has(path));
  return {
    source: 'flag',
    values: valuesOf(({ path }) => flags[path]),
    folder,
    problems: unknown.map((path) => ({ at: flagName(path), isTyped: true, text: unknownSetting(path) })),
    locationOf: (path) => ({ at: flagName(settingPath(path)), isTyped: true }),
  };
}

/** Settings from `RANKD_…` variables; an empty one counts as not set. */
export function environmentLayer(env: Record<string, string | undefined>, folder: string): Layer {
  const variables = new Map(settings.map((setting) => [setting.path, setting.env]));
  return {
    source: 'environment',
    values: valuesOf((setting) => (setting.env && env[setting.env]) || undefined),
    folder,
    problems: strayVariables(env),
    locationOf: (path) => ({ at: variables.get(settingPath(path)) }),
  };
}

function valuesOf(textOf: (setting: Setting) => string | undefined): Map<string, unknown> {
  const values = new Map<string, unknown>();
  for (const setting of settings) {
    const text = textOf(setting);
    if (text !== undefined) values.set(setting.path, readText(text.trim(), setting.type));
  }
  return values;
}

/** The value that the file would have. Text that is no such value stays text, and the schema refuses it. */
function readText(text: string, type: Setting['type']): unknown {
  const isList = type === 'text or numbers' && (/\d/.test(text) || text.startsWith('['));
  if (type === 'numbers' || isList) return itemsOf(text).map(readNumber);
  if (type === 'texts') return itemsOf(text);
  if (type === 'number' || type === 'text or number') return readNumber(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

/** The items of `a, b`, or of a list as the file would have it: `[a, "b"]`. */
function itemsOf(text: string): string[] {
  const items = /^\[(.*)\]$/s.exec(text)?.[1] ?? text;
  const parts = items.match(/"[^"]*"|'[^']*'|[^,]+/g) ?? [];
  return parts.map((part) => part.trim().replace(/^(["'])(.*)\1$/s, '$2')).filter((part) => part !== '');
}

function readNumber(text: string): number | string {
  return /^-?\d+$/.test(text) ? Number(text) : text;
}

/** The path of the setting itself, without the index of an entry of its list. */
function settingPath(path: readonly PropertyKey[]): string {
  return path.filter((segment) => typeof segment === 'string').join('.');
}

/** `server.port` → `--port`. */
function flagName(path: string): string {
  return `--${path.slice(path.lastIndexOf('.') + 1).replaceAll('_', '-')}`;
}

function strayVariables(env: Record<string, string | undefined>): Problem[] {
  const known = new Set([...settings.map((setting) => setting.env), ...otherVariables]);
  return Object.entries(env)
    .filter(([name, text]) => name.startsWith('RANKD_') && text && !known.has(name) && !isServiceLink(name, text))
    .map(([name]) => ({ at: name, text: unknownVariable(name) }));
}

/** Variables that Kubernetes and Docker links put into the environment of every container beside a service called rankd. */
function isServiceLink(name: string, text: string): boolean {
  return /^RANKD_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP)(_\w+)?)$/.test(name) || /^(tcp|udp):/.test(text);
}
