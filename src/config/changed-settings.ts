import type { Config } from './config.ts';
import type { LoadedConfig } from './load.ts';

/** A setting that has another value than before; as the file would say it, null where there is none, `[redacted]` for a secret. */
export interface ChangedSetting {
  name: string;
  before: unknown;
  now: unknown;
}

export interface ChangedSettings {
  /** Taken up by a running daemon. */
  applied: ChangedSetting[];
  /** Other than what it was started with, and not taken up before it is started again. */
  needRestart: ChangedSetting[];
}

/** What is different in `after` from `before`; in what only a start takes up, from `started`. */
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

/** What a listener was made with. */
function isBound(name: string): boolean {
  return (name.startsWith('server.') && name !== 'server.deadline') || name.startsWith('metrics.');
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
