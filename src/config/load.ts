import { resolve } from 'node:path';
import { outboundProxy } from '../base/outbound-proxy.ts';
import { type Config, toConfig } from './config.ts';
import { readConfigFile } from './config-file.ts';
import { readTargets } from './declared-webhook.ts';
import type { Layer } from './layer.ts';
import { type ConfigLocationSources, locateConfig, overlookedConfigs } from './locate.ts';
import { type Origin, originsOf } from './origin.ts';
import { environmentLayer, flagLayer } from './overrides.ts';
import { type ChosenPlatform, choosePlatform } from './platform-choice.ts';
import { keyFile } from './platform-key.ts';
import { ConfigError } from './problem.ts';
import { chooseStore, type StoreSettings } from './store-choice.ts';
import { withoutPassword } from './store-url.ts';
import { trustedConfig } from './trusted-config.ts';
import { validate } from './validate.ts';

export interface ConfigSources extends ConfigLocationSources {
  /** By path of the setting, as text: `{ 'server.port': '8080' }`. Never a secret. */
  flags: Record<string, string>;
}

export interface LoadedConfig {
  config: Config;
  /** Absolute path of the file that was read; `undefined` if there is none. */
  file: string | undefined;
  /** The file that would be read now. It may have been made or removed since. */
  fileNow(): string | undefined;
  /** By path of the setting, in the order of the schema. It has `platform.api_key` too, if there is one. */
  origins: ReadonlyMap<string, Origin>;
  /** Things that work, but that somebody should look at: one sentence each. */
  warnings: string[];
}

/**
 * The configuration. Each setting comes from its flag, else the environment, else the file, else the default.
 * Throws a ConfigError with all problems at once, and `no_permission` if the file may not be read, or was found and may come from another user.
 */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const { flags, env, cwd } = sources;
  const location = trustedConfig(sources);
  const file = location && readConfigFile(location);
  const layers: Layer[] = [flagLayer(flags, cwd), environmentLayer(env, cwd), ...(file ? [file] : [])];
  const problems = layers.flatMap((layer) => layer.problems);
  // Without the file, it could only guess what is missing or wrong.
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
  const ofStore = store.problems.map(({ setting, text }) => {
    const layer = layers.find(({ values }) => values.has(`store.${setting}`));
    return { ...(layer?.locationOf(['store', setting]) ?? { setting: `store.${setting}` }), text };
  });
  const wrong = [...problems, ...invalid, ...platform.problems, ...ofTargets.problems, ...ofStore];
  const all = wrong.length > 0 ? wrong : platform.missing;
  if (settings === undefined || platform.choice === undefined || all.length > 0) {
    throw new ConfigError(all, { file: file?.name });
  }

  const absolute = (name: string, path: string | undefined) => path && resolve(folderOf(name), path);
  const files = {
    groupFile: absolute('platform.group_file', settings.platform.group_file),
    headFile: absolute('audit.head_file', settings.audit.head_file),
  };
  return {
    config: toConfig(settings, platform.choice, {
      files,
      targets,
      store: store.server,
      proxy: outboundProxy(env),
      at: (path) => file?.locationOf(path).at ?? '',
    }),
    file: location?.path,
    fileNow: () => locateConfig(sources)?.path,
    origins: withPlatform(withoutSecrets(origins), platform),
    warnings: [
      ...overlookedConfigs(sources).map(overlooked),
      ...platform.warnings,
      ...ofTargets.warnings,
      ...store.warnings,
    ],
  };
}

function storeSettingsOf(origins: ReadonlyMap<string, Origin>): StoreSettings {
  const text = (name: keyof StoreSettings) => {
    const value = origins.get(`store.${name}`)?.value;
    return typeof value === 'string' ? value : undefined; // the schema refuses anything else
  };
  return { url: text('url'), password_file: text('password_file'), ca_file: text('ca_file'), tls: text('tls') };
}

/** The URL of the store can hold a password. */
function withoutSecrets(origins: ReadonlyMap<string, Origin>): ReadonlyMap<string, Origin> {
  const { value, ...url } = origins.get('store.url') ?? { source: 'default', at: undefined, value: undefined };
  if (typeof value !== 'string') return origins;
  const shadows = url.shadows?.map((shadow) => ({ ...shadow, value: '[redacted]' }));
  return new Map(origins).set('store.url', { ...url, value: withoutPassword(value), ...(shadows && { shadows }) });
}

function overlooked(path: string): string {
  return `${path} is not read: the file has to be called rankd.yaml, or be named with --config.`;
}

/** Adds the key, and the kind of platform that was chosen if no setting names it. */
function withPlatform(origins: ReadonlyMap<string, Origin>, { kind, key }: ChosenPlatform): Map<string, Origin> {
  const given = new Map(origins);
  if (key !== undefined) given.set('platform.api_key', { ...key.origin, value: '[redacted]' });
  const { source = 'default', at } = origins.get('platform.kind') ?? {};
  return given.set('platform.kind', { source, at, value: kind });
}
