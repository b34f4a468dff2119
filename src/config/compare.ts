import { crypto } from '../base/node-modules.ts';
import type { DeclaredWebhook } from './declared-webhook.ts';
import type { LoadedConfig } from './load.ts';

/** Both values are in the form used in the file: null if the setting is off, `[redacted]` for a secret. */
export interface ChangedSetting {
  name: string;
  before: unknown;
  now: unknown;
}

export interface ChangedSettings {
  applied: ChangedSetting[];
  /** All changes since the daemon started that take effect only after a restart. */
  needRestart: ChangedSetting[];
}

/** Compares `after` with `before` or, for settings that need a restart, with `started`. */
export function changedSettings({
  started,
  before,
  after,
}: Record<'started' | 'before' | 'after', LoadedConfig>): ChangedSettings {
  const changesFrom = (earlier: LoadedConfig) =>
    [...new Set([...earlier.origins.keys(), ...after.origins.keys()])]
      .filter((name) => comparable(earlier, name) !== comparable(after, name))
      .map((name) => ({ name, before: shownValue(earlier, name), now: shownValue(after, name) }));
  return {
    applied: changesFrom(before).filter(({ name }) => !needsRestart(name)),
    needRestart: changesFrom(started).filter(({ name }) => needsRestart(name)),
  };
}

/** Listeners and the store read their settings only when they are opened. */
function needsRestart(name: string): boolean {
  if (name === 'server.deadline' || name === 'server.public_url') return false;
  return ['server.', 'metrics.', 'dashboard.', 'store.'].some((section) => name.startsWith(section));
}

/**
 * For `platform.api_key` and `erasure.secret_file`, includes the secret itself, so that a new secret counts as a
 * change.
 */
function comparable({ config: { platform, erasure }, origins }: LoadedConfig, name: string): string {
  const value = JSON.stringify(origins.get(name)?.value ?? null);
  if (name === 'erasure.secret_file') return value + (erasure.secret?.reveal() ?? '');
  if (name !== 'platform.api_key') return value;
  return platform.kind === 'open-cloud' ? platform.apiKey.reveal() : '';
}

function shownValue({ origins }: LoadedConfig, name: string): unknown {
  return origins.get(name)?.value ?? null;
}

/**
 * Matches the settings that should be the same on all daemons that serve one group. Others, such as listeners and logs,
 * can differ.
 */
const shared =
  /^(platform\.kind|group\.|policy\.|limits\.|security\.|history\.|audit\.keep$|compat$|keys$|erasure\.|webhooks\.|discord\.)/;

/**
 * Returns the fingerprints of the shared settings, keyed by name. Daemons compare them without revealing the values.
 */
export function fingerprintsOf({ origins, config }: Pick<LoadedConfig, 'origins' | 'config'>): Record<string, string> {
  const inFiles = config.webhooks.targets.map(webhookFingerprint); // the settings contain only paths
  const contentOf = (name: string, value: unknown) => {
    // Another daemon may take the secret from the variable instead of a file.
    if (name === 'erasure.secret_file') return config.erasure.secret?.reveal();
    return name === 'webhooks.targets' ? [value, inFiles] : value;
  };
  return Object.fromEntries(
    [...origins]
      .filter(([name]) => shared.test(name))
      .map(([name, { value }]) => [name, fingerprint(JSON.stringify(contentOf(name, value) ?? null))]),
  );
}

export function webhookFingerprint({ address, secret }: Pick<DeclaredWebhook, 'address' | 'secret'>): string {
  return fingerprint(`${address.reveal()}\n${secret?.reveal() ?? ''}`);
}

function fingerprint(text: string): string {
  return crypto().hash('sha256', text).slice(0, 12);
}
