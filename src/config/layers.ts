import { LineCounter, parseDocument } from 'yaml';
import { suggest } from '../base/text.ts';
import { describeFlaw, inQuotes, type Location, type Problem, pathText } from './problem.ts';
import { erasureVariable, keyFile, keyVariable, panelPortVariable, passwordVariable, portVariable } from './secret.ts';
import { type EntrySetting, keySettings, type Setting, sections, settings, webhookSettings } from './settings.ts';

export interface Layer {
  source: 'flag' | 'environment' | 'file';
  /** Keyed by setting path, e.g. `server.port`. */
  values: ReadonlyMap<string, unknown>;
  /** The folder against which the layer's relative paths are resolved. */
  folder: string;
  /** Problems that the schema can't detect, such as unknown flags and variables, and values in quotes. */
  problems: readonly Problem[];
  locationOf(path: readonly PropertyKey[]): Location;
}

/** `flags` is keyed by setting path: `{ 'server.port': '8080' }`. */
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

/** Reads the `RANKD_…` variables, and treats an empty one as unset. */
export function environmentLayer(env: Record<string, string | undefined>, folder: string): Layer {
  const variables = new Map(settings.map((setting) => [setting.path, setting.env]));
  const textOf = ({ env: name }: Setting) => (name && env[name]) || undefined;
  const flaws = new Map(settings.flatMap((setting) => flawsOf(setting, textOf(setting)?.trim() ?? '')));
  return {
    source: 'environment',
    values: valuesOf((setting) => (flaws.has(setting) ? undefined : textOf(setting))),
    folder,
    problems: [...strayVariables(env), ...flaws.values()],
    locationOf: (path) => {
      const isInEntry = path.length > 1 && settingPath(path) === 'keys';
      return { at: variables.get(settingPath(path)), ...(isInEntry && { setting: pathText(path) }) };
    },
  };
}

/**
 * Applies the port that a hosting platform assigns in PORT. Unless another layer sets the host, rankd then listens on
 * all IPv4 addresses, because the platform's proxy runs on another machine. If another layer sets the port, PORT is
 * meant for a different program, and is ignored.
 */
export function platformLayer(env: Record<string, string | undefined>, others: readonly Layer[]): Layer[] {
  const port = env[portVariable]?.trim();
  const isSet = (path: string) => others.some(({ values }) => values.has(path));
  if (!port || isSet('server.port')) return [];
  const values = new Map<string, unknown>([['server.port', readNumber(port)]]);
  if (!isSet('server.host')) values.set('server.host', '0.0.0.0');
  const at = port === env[panelPortVariable]?.trim() ? panelPortVariable : portVariable;
  return [{ source: 'environment', values, folder: '', problems: [], locationOf: () => ({ at }) }];
}

function valuesOf(textOf: (setting: Setting) => string | undefined): Map<string, unknown> {
  const values = new Map<string, unknown>();
  for (const setting of settings) {
    const text = textOf(setting);
    if (text !== undefined) values.set(setting.path, readText(text.trim(), setting.type));
  }
  return values;
}

/** Converts text to the value that YAML would give it. Returns invalid text unchanged, and the schema refuses it. */
function readText(text: string, type: Setting['type']): unknown {
  const isList = type === 'text or numbers' && (/\d/.test(text) || text.startsWith('['));
  if (type === 'numbers' || isList) return itemsOf(text).map(readNumber);
  if (type === 'texts') return itemsOf(text);
  if (type === 'number' || type === 'text or number') return readNumber(text);
  if (type === 'mappings') return readList(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

function readList(text: string): unknown {
  const document = parseDocument(text, { logLevel: 'silent', prettyErrors: false });
  if (document.errors.length > 0) return text;
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch {
    return text;
  }
}

/**
 * Reports a list that cannot be parsed, and a value in quotes: a shell removes them, but the web forms of hosting
 * platforms do not.
 */
function flawsOf(setting: Setting, text: string): Array<[Setting, Problem]> {
  const { env: at, type } = setting;
  const isQuoted = /^(["']).*\1$/s.test(text) && ['text', 'number', 'boolean', 'mappings'].includes(type);
  if (isQuoted) return [[setting, { at, text: inQuotes }]];
  if (type !== 'mappings') return [];
  const lineCounter = new LineCounter();
  const [flaw] = parseDocument(text, { logLevel: 'silent', prettyErrors: false, lineCounter }).errors;
  if (flaw === undefined) return [];
  const { line, col } = lineCounter.linePos(flaw.pos[0]);
  return [[setting, { at: `${at}:${line}:${col}`, text: describeFlaw(flaw) }]];
}

/** Splits `a, b` or the YAML list `[a, "b"]`. */
function itemsOf(text: string): string[] {
  const items = /^\[(.*)\]$/s.exec(text)?.[1] ?? text;
  const parts = items.match(/"[^"]*"|'[^']*'|[^,]+/g) ?? [];
  return parts.map((part) => part.trim().replace(/^(["'])(.*)\1$/s, '$2')).filter((part) => part !== '');
}

function readNumber(text: string): number | string {
  return /^-?\d+$/.test(text) ? Number(text) : text;
}

/** Returns the setting to which a path belongs: `['keys', 0, 'name']` → `keys`. */
export function settingPath(path: readonly PropertyKey[]): string {
  const index = path.findIndex((segment) => typeof segment !== 'string');
  return path.slice(0, index === -1 ? undefined : index).join('.');
}

/** `server.port` → `--port`. */
function flagName(path: string): string {
  return `--${path.slice(path.lastIndexOf('.') + 1).replaceAll('_', '-')}`;
}

export interface Origin {
  source: Layer['source'] | 'credential' | 'default';
  /** The flag, variable, `file:line:col` or credential file; `undefined` for a default. */
  at: string | undefined;
  /** The value in the form used in the file; `[redacted]` for a secret, `undefined` if the setting is off. */
  value: unknown;
  /** The sources that this one overrides, in order of precedence, without the default; absent if there are none. */
  shadows?: Origin[];
}

export function originsOf(layers: readonly Layer[]): Map<string, Origin> {
  return new Map(settings.map((setting) => [setting.path, originOf(layers, setting)]));
}

function originOf(layers: readonly Layer[], setting: { path: string; default: unknown }): Origin {
  const [first, ...shadows] = layers
    .filter(({ values }) => values.has(setting.path))
    .map((layer) => ({
      source: layer.source,
      at: layer.locationOf(setting.path.split('.')).at,
      value: layer.values.get(setting.path),
    }));
  if (first === undefined) return { source: 'default', at: undefined, value: setting.default };
  if (shadows.length === 0) return first;
  return { ...first, shadows: shadows.map((one) => ({ ...one, value: redactLong(one.value) })) };
}

/** Redacts a long overridden value: the schema has not checked it, so it may be a misplaced secret. */
function redactLong(value: unknown): unknown {
  return typeof value === 'string' && value.length >= 32 ? '[redacted]' : value;
}

function strayVariables(env: Record<string, string | undefined>): Problem[] {
  const known = new Set([...settings.map((setting) => setting.env), ...otherVariables]);
  return Object.entries(env)
    .filter(([name, text]) => name.startsWith('RANKD_') && text && !known.has(name) && !isServiceLink(name, text))
    .map(([name]) => ({ at: name, text: unknownVariable(name) }));
}

/**
 * Variables without a setting, because other code reads them, or because they contain secrets, which must not be in the
 * file.
 */
export const otherVariables = ['RANKD_CONFIG', 'RANKD_DATA_DIR', keyVariable, passwordVariable, erasureVariable];

/** Recognizes the variables that Kubernetes and Docker links set in containers when a service is named rankd. */
function isServiceLink(name: string, text: string): boolean {
  return /^RANKD_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP)(_\w+)?)$/.test(name) || /^(tcp|udp):/.test(text);
}

function unknownVariable(name: string): string {
  const known = [...settings.flatMap(({ env }) => env ?? []), ...otherVariables];
  const inFile = settings.find(({ env, path }) => !env && name === `RANKD_${path.toUpperCase().replaceAll('.', '_')}`);
  if (inFile !== undefined) return `no variable can set ${inFile.path}; set it in the configuration file`;
  const unprefixed = name.slice('RANKD'.length);
  return withSuggestion(
    'matches no setting',
    fewNames(known.filter((env) => env.endsWith(unprefixed))) ?? suggest(name, known),
  );
}

export function unknownSetting(path: string): string {
  const entry = /^(keys|webhooks\.targets)\.\d+\.(.+)$/.exec(path);
  if (entry !== null) return unknownEntrySetting(entry[2] ?? '', entry[1] === 'keys' ? ofKeys : ofTargets);
  const advice = namesSecret(path) ? adviceFor(path) : undefined;
  if (advice !== undefined) return `unknown setting; a secret never goes here: ${advice}`;
  return withSuggestion(
    'unknown setting',
    misplaced(path) ?? suggest(path, [...settings.map(({ path }) => path), ...sections]),
  );
}

/**
 * Explains where to put the secret that this path seems to name. In `platform` and `group`, and outside the known
 * sections, that is the Roblox key. Returns `undefined` if the section has no such secret.
 */
function adviceFor(path: string): string | undefined {
  const [section = '', ...rest] = path.split('.');
  const nameIn = (file: string, variable: string) => `name its file in ${file} or set ${variable}`;
  switch (section) {
    case 'store':
      return nameIn('store.password_file', passwordVariable);
    case 'erasure':
      return nameIn('erasure.secret_file', erasureVariable);
    case 'webhooks':
      return 'name its file in the secret_file of an entry of webhooks.targets';
    case 'discord': // its only key is public
      return /key$/i.test(path) ? undefined : '`rankd discord setup` asks for the bot token and does not store it';
    default: {
      const isOther = rest.length > 0 && sections.has(section) && !['platform', 'group'].includes(section);
      return isOther ? undefined : nameIn(keyFile, keyVariable);
    }
  }
}

const ofKeys = { known: keySettings, advice: 'give its hash, which `rankd key hash -` prints' };
const ofTargets = { known: webhookSettings, advice: 'name its file in url_file or secret_file' };

function unknownEntrySetting(
  name: string,
  { known, advice }: { known: readonly EntrySetting[]; advice: string },
): string {
  if (namesSecret(name) || /^(url|address)$/i.test(name)) return `unknown setting; a secret never goes here: ${advice}`;
  const names = known.map(({ path }) => path);
  return withSuggestion('unknown setting', suggest(name, names));
}

function namesSecret(path: string): boolean {
  return /(key|secret|token|password|credential)$/i.test(path);
}

function misplaced(path: string): string | undefined {
  const name = path.slice(path.lastIndexOf('.') + 1);
  return fewNames(settings.map(({ path }) => path).filter((path) => path.endsWith(`.${name}`)));
}

function fewNames(found: string[]): string | undefined {
  return found.length > 0 && found.length <= 3 ? found.join(' or ') : undefined;
}

function withSuggestion(text: string, suggestion: string | undefined): string {
  return suggestion === undefined ? text : `${text}; did you mean ${suggestion}?`;
}
