import { crypto } from '../base/node-modules.ts';
import { fingerprintOf } from './declared-webhook.ts';
import type { LoadedConfig } from './load.ts';

/** Sections and settings that all daemons of a group should share; where one listens, logs and keeps its files is its own affair. */
const shared = /^(platform\.kind|group\.|policy\.|limits\.|security\.|history\.|audit\.keep$|compat$|keys$|webhooks\.)/;

/** A fingerprint of each shared setting by its name: two with the same value have the same one, and it tells nothing of the value. */
export function fingerprintsOf({ origins, config }: Pick<LoadedConfig, 'origins' | 'config'>): Record<string, string> {
  const named = [...origins].filter(([name]) => shared.test(name)).map(([name, { value }]) => [name, value] as const);
  const inFiles = config.webhooks.targets.map(fingerprintOf); // what the files of addresses and secrets hold counts, too
  const told = named.map(([name, value]) => [name, name === 'webhooks.targets' ? [value, inFiles] : value] as const);
  return Object.fromEntries(told.map(([name, value]) => [name, fingerprint(JSON.stringify(value ?? null))]));
}

function fingerprint(text: string): string {
  return crypto().createHash('sha256').update(text).digest('hex').slice(0, 12);
}
