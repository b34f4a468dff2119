import { crypto } from '../base/node-modules.ts';
import type { DeclaredWebhook } from './declared-webhook.ts';
import type { LoadedConfig } from './load.ts';

/** A setting with a new value. Values are as the file writes them: null if the setting is off, `[redacted]` for a secret. */
export interface ChangedSetting {
  name: string;
  before: unknown;
  now: unknown;
}

export interface ChangedSettings {
  /** A running daemon applies these. */
  applied: ChangedSetting[];
  /** These differ from the values that the daemon started with; it applies them at its next start. */
  needRestart: ChangedSetting[];
}

/** The differences between `before` and `after`. Settings that need a restart are compared with `started`. */
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

/** True for settings with which a listener or the store is opened. */
function needsRestart(name: string): boolean {
  if (name === 'server.deadline' || name === 'server.public_url') return false;
  return ['server.', 'metrics.', 'dashboard.', 'store.'].some((section) => name.startsWith(section));
}

/** For `platform.api_key`, whose value is redacted, and for the file of the erasure secret, the secret itself. */
function comparable({ config: { platform, erasure }, origins }: LoadedConfig, name: string): string {
  const value = JSON.stringify(origins.get(name)?.value ?? null);
  if (name === 'erasure.secret_file') return value + (erasure.secret?.reveal() ?? '');
  if (name !== 'platform.api_key') return value;
  return platform.kind === 'open-cloud' ? platform.apiKey.reveal() : '';
}

function shownValue({ origins }: LoadedConfig, name: string): unknown {
  return origins.get(name)?.value ?? null;
}

/** The settings that all daemons of a group should share. Each daemon has its own listeners, log and files. */
const shared =
  /^(platform\.kind|group\.|policy\.|limits\.|security\.|history\.|audit\.keep$|compat$|keys$|erasure\.|webhooks\.|discord\.)/;

/** A fingerprint of each shared setting, by name. Equal values have equal fingerprints, which do not reveal the value. */
export function fingerprintsOf({ origins, config }: Pick<LoadedConfig, 'origins' | 'config'>): Record<string, string> {
  const inFiles = config.webhooks.targets.map(webhookFingerprint); // the settings only name the files of addresses and secrets
  const contentOf = (name: string, value: unknown) => {
    if (name === 'erasure.secret_file') return config.erasure.secret?.reveal(); // a daemon may have it from a variable
    return name === 'webhooks.targets' ? [value, inFiles] : value;
  };
  return Object.fromEntries(
    [...origins]
      .filter(([name]) => shared.test(name))
      .map(([name, { value }]) => [name, fingerprint(JSON.stringify(contentOf(name, value) ?? null))]),
  );
}

/** Changes with the address or the secret, and reveals neither. */
export function webhookFingerprint({ address, secret }: Pick<DeclaredWebhook, 'address' | 'secret'>): string {
  return fingerprint(`${address.reveal()}\n${secret?.reveal() ?? ''}`);
}

function fingerprint(text: string): string {
  return crypto().hash('sha256', text).slice(0, 12);
}
