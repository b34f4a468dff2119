import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { z } from 'zod';
import { outboundProxy } from '../base/outbound-proxy.ts';
import { type Config, toConfig } from './config.ts';
import { type ConfigFile, isSection, readConfigFile } from './config-file.ts';
import { readTargets } from './declared-webhook.ts';
import {
  environmentLayer,
  flagLayer,
  type Layer,
  type Origin,
  originsOf,
  platformLayer,
  settingPath,
  unknownSetting,
} from './layers.ts';
import { type ConfigLocationSources, locateConfig, overlookedConfigs, trustedConfig } from './locate.ts';
import { type ChosenPlatform, choosePlatform } from './platform-choice.ts';
import { ConfigError, type Problem } from './problem.ts';
import { type Settings, settingsSchema } from './schema.ts';
import { erasureVariable, findSecret, keyFile, Secret } from './secret.ts';
import { chooseStore, type StoreSettings, withoutPassword } from './store-choice.ts';

export interface ConfigSources extends ConfigLocationSources {
  /** Keyed by setting path: `{ 'server.port': '8080' }`. Never contains a secret. */
  flags: Record<string, string>;
}

export interface LoadedConfig {
  config: Config;
  /** The absolute path; `undefined` if no file was read. */
  file: string | undefined;
  /**
   * Returns the file that a reload would read: a file may have been created or removed since this configuration was
   * loaded.
   */
  fileNow(): string | undefined;
  /** PORT or SERVER_PORT, if that variable sets the port. */
  portFrom: string | undefined;
  /** Keyed by setting path, in schema order. Includes `platform.api_key` if there is a key. */
  origins: ReadonlyMap<string, Origin>;
  /**
   * One sentence for each probable mistake in a setting, a secret file or the configuration file's name that does not
   * stop rankd.
   */
  warnings: string[];
}

/**
 * Takes each setting from its flag, else the environment, else the file, else the default. Throws a ConfigError that
 * lists the problems, and `no_permission` if this user is not allowed to read the file, or if another user could have
 * written it.
 */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const { flags, env, cwd } = sources;
  const location = trustedConfig(sources);
  const file = location && readConfigFile(location);
  const given: Layer[] = [flagLayer(flags, cwd), environmentLayer(env, cwd), ...(file ? [file] : [])];
  const ofPlatform = platformLayer(env, given);
  const layers = [...given, ...ofPlatform];
  const problems = layers.flatMap((layer) => layer.problems);
  // If the file could not be parsed, rankd would wrongly report its settings as missing.
  if (file !== undefined && file.content === undefined) throw new ConfigError(problems, { file: file.name });

  const origins = originsOf(layers);
  const folderOf = (path: string) => layers.find(({ values }) => values.has(path))?.folder ?? cwd;
  const { settings, problems: invalid } = validate(layers, file);
  const platform = choosePlatform({ origins, env, folder: folderOf(keyFile) });
  const { targets, ...ofTargets } = readTargets(settings?.webhooks.targets ?? [], {
    ...{ env, folder: folderOf('webhooks.targets') },
    locationOf: (...path) => file?.locationOf(['webhooks', 'targets', ...path]),
  });
  const store = chooseStore({
    ...{ settings: storeSettingsOf(origins), env, isUrlInFile: origins.get('store.url')?.source === 'file' },
    folderOf: (setting) => folderOf(`store.${setting}`),
  });
  const locationOf = (setting: string) => {
    const layer = layers.find(({ values }) => values.has(setting));
    return layer?.locationOf(setting.split('.')) ?? { setting };
  };
  const ofStore = store.problems.map(({ setting, text }) => ({ ...locationOf(`store.${setting}`), text }));
  const absolute = (name: string, path: string | undefined) => path && resolve(folderOf(name), path);
  const files = {
    groupFile: absolute('platform.group_file', settings?.platform.group_file),
    headFile: absolute('audit.head_file', settings?.audit.head_file),
  };
  const erasure = findSecret(env, {
    ...{ variable: erasureVariable, credential: 'erasure_secret', what: 'secret' },
    file: absolute('erasure.secret_file', settings?.erasure.secret_file),
  });
  const flaw = 'problem' in erasure ? erasure.problem : flawOfErasureSecret(erasure.text, env);
  const ofErasure = flaw === undefined ? [] : [{ ...locationOf('erasure.secret_file'), text: flaw }];
  const text = 'is a folder; expected the path of a file in it';
  const ofHeadFile = isFolder(files.headFile) ? [{ ...locationOf('audit.head_file'), text }] : [];
  const wrong = [
    ...problems,
    ...invalid,
    ...platform.problems,
    ...ofTargets.problems,
    ...ofStore,
    ...ofErasure,
    ...ofHeadFile,
  ];
  const all = wrong.length > 0 ? wrong : platform.missing;
  if (settings === undefined || platform.choice === undefined || all.length > 0) {
    throw new ConfigError(all, { file: file?.name });
  }

  return {
    config: toConfig(settings, platform.choice, {
      files,
      targets,
      store: store.server,
      proxy: outboundProxy(env, sources.node),
      erasureSecret: 'text' in erasure && erasure.text !== undefined ? new Secret(erasure.text) : undefined,
      at: (path) => (layers.find(({ values }) => values.has(settingPath(path))) ?? file)?.locationOf(path).at ?? '',
    }),
    file: location?.path,
    fileNow: () => locateConfig(sources)?.path,
    portFrom: ofPlatform[0]?.locationOf(['server', 'port']).at,
    origins: withPlatform(withoutSecrets(origins), platform),
    warnings: [
      ...overlookedConfigs(sources).map(overlooked),
      ...platform.warnings,
      ...ofTargets.warnings,
      ...store.warnings,
      ...('warning' in erasure && erasure.warning !== undefined ? [erasure.warning] : []),
    ],
  };
}

/** Refuses a short secret, because an attacker could guess it offline from one intercepted request. */
function flawOfErasureSecret(text: string | undefined, env: ConfigSources['env']): string | undefined {
  if (text === undefined || text.length >= 16) return undefined;
  const what = env[erasureVariable]?.trim() ? erasureVariable : 'the secret';
  return `${what} has fewer than 16 characters, so it could be guessed; use a longer one here and on Roblox, such as one from openssl rand -hex 32`;
}

/** Returns false if this user cannot check the path; the daemon reports the error when it opens the file. */
function isFolder(path: string | undefined): boolean {
  try {
    return path !== undefined && statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** Merges the layers and validates the result. For each setting, the first layer that has a value takes precedence. */
function validate(
  layers: readonly Layer[],
  file: ConfigFile | undefined,
): { settings?: Settings; problems: Problem[] } {
  // Compiling the schema (`jitless: false`) pays off only for repeated checks, but rankd checks only once per load.
  const checked = settingsSchema.safeParse(merged(layers, file?.content ?? {}), { reportInput: true, jitless: true });
  if (checked.success) return { settings: checked.data, problems: [] };
  return { problems: checked.error.issues.flatMap((issue) => problemsOf(issue, layers, file)) };
}

/** Returns the file's content, including unknown settings, with the other layers' values on top. */
function merged(layers: readonly Layer[], content: Record<string, unknown>): Record<string, unknown> {
  const tree = structuredClone(content);
  for (const { values } of layers.toReversed()) {
    for (const [path, value] of values) setAt(tree, path.split('.'), value);
  }
  return tree;
}

/** Ignores a path below a value that is not a mapping, because the schema refuses that value. */
function setAt(tree: Record<string, unknown>, [name, ...rest]: string[], value: unknown): void {
  if (name === undefined) return;
  if (rest.length === 0) {
    tree[name] = value;
    return;
  }
  tree[name] ??= {};
  const section = tree[name];
  if (isSection(section)) setAt(section, rest, value);
}

function problemsOf(issue: z.core.$ZodIssue, layers: readonly Layer[], file: ConfigFile | undefined): Problem[] {
  // In a union of a value and a list, only issues in the list's entries have paths.
  const inside = issue.code === 'invalid_union' && issue.errors.find((of) => of.some(({ path }) => path.length > 0));
  if (inside) {
    return inside.flatMap((one) => problemsOf({ ...one, path: [...issue.path, ...one.path] }, layers, file));
  }
  const setting = settingPath(issue.path);
  const layer = layers.find(({ values }) => values.has(setting)) ?? file;
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((name) => {
      const path = [...issue.path, name];
      const at = layer === file ? file?.locationOfKey(path) : layer?.locationOf(path);
      return { ...at, text: unknownSetting(path.join('.')) };
    });
  }
  const isQuoted =
    typeof issue.input === 'string' && /^-?\d+$/.test(issue.input) && /^a whole number[^,]*$/.test(issue.message);
  const expected = isQuoted && layer === file ? `${issue.message}, without quotes` : issue.message;
  return [{ ...layer?.locationOf(issue.path), text: `${describeValue(issue.input)}; expected ${expected}` }];
}

/** Quotes numbers and short words, but gives only the type of a value that may be a secret. */
function describeValue(value: unknown): string {
  if (value === null || value === undefined) return 'has no value';
  if (Array.isArray(value)) return value.length === 0 ? 'is an empty list' : 'is a list';
  if (typeof value === 'object') return 'is a mapping';
  if (typeof value !== 'string') return `is ${value}`;
  return value.length <= 24 && !/[@/=]/.test(value) ? `is ${JSON.stringify(value)}` : 'is text';
}

function storeSettingsOf(origins: ReadonlyMap<string, Origin>): StoreSettings {
  const text = (name: keyof StoreSettings) => {
    const value = origins.get(`store.${name}`)?.value;
    return typeof value === 'string' ? value : undefined; // the schema refuses anything else
  };
  const names = ['url', 'password_file', 'ca_file', 'tls', 'node'] as const;
  return Object.fromEntries(names.map((name) => [name, text(name)]));
}

/** Redacts the password in `store.url`, and all of every URL that it overrides. */
function withoutSecrets(origins: ReadonlyMap<string, Origin>): ReadonlyMap<string, Origin> {
  const { value, ...url } = origins.get('store.url') ?? { source: 'default', at: undefined, value: undefined };
  if (typeof value !== 'string') return origins;
  const shadows = url.shadows?.map((shadow) => ({ ...shadow, value: '[redacted]' }));
  return new Map(origins).set('store.url', { ...url, value: withoutPassword(value), ...(shadows && { shadows }) });
}

/** Adds the origins of the key and of `platform.kind`, whose default depends on `group.id`. */
function withPlatform(origins: ReadonlyMap<string, Origin>, { kind, key }: ChosenPlatform): Map<string, Origin> {
  const given = new Map(origins);
  if (key !== undefined) given.set('platform.api_key', { ...key.origin, value: '[redacted]' });
  const { source = 'default', at } = origins.get('platform.kind') ?? {};
  return given.set('platform.kind', { source, at, value: kind });
}

function overlooked(path: string): string {
  return `rankd does not read ${path}: rename it to rankd.yaml, or name it with --config.`;
}
