import type { Config } from './config.ts';
import type { LoadedConfig } from './load.ts';

/** A setting that has another value than before. Values are as the file would say them: null if there is none, `[redacted]` for a secret. */
export interface ChangedSetting {
  name: string;
  before: unknown;
  now: unknown;
}

export interface ChangedSettings {
  /** A running daemon applies these. */
  applied: ChangedSetting[];
  /** These differ from what the daemon was started with, and wait until it is started again. */
  needRestart: ChangedSetting[];
}

/** What differs between `before` and `after`. Settings that only a start applies are compared with `started`. */
export function changedSettings({
  started,
  before,
  after,
}: Record<'started' | 'before' | 'after', LoadedConfig>): ChangedSettings {
  const changesFrom = (earlier: LoadedConfig) =>
    [...new Set([...earlier.origins.keys(), ...after.origins.keys()])]
      .filter((name) => comparable(earlier, name) !== comparable(after, name))
      .map((name) => ({ name, before: settingOf(earlier, name), now: settingOf(after, name) }));
  return {
    applied: changesFrom(before).filter(({ name }) => !isBound(name)),
    needRestart: changesFrom(started).filter(({ name }) => isBound(name)),
  };
}

/** The settings that a listener or the store is opened with. */
function isBound(name: string): boolean {
  const isForAll = name === 'server.deadline' || name === 'server.public_url';
  const isOpenedWith = ['metrics.', 'dashboard.', 'store.'].some((section) => name.startsWith(section));
  return (name.startsWith('server.') && !isForAll) || isOpenedWith;
}

function comparable(loaded: LoadedConfig, name: string): string {
  return name === 'platform.api_key' ? secretOf(loaded.config) : JSON.stringify(settingOf(loaded, name));
}

function secretOf({ platform }: Config): string {
  return platform.kind === 'open-cloud' ? platform.apiKey.reveal() : '';
}

function settingOf({ origins }: LoadedConfig, name: string): unknown {
  return origins.get(name)?.value ?? null;
}
