import { dirname, resolve } from 'node:path';
import type { LoadedConfig } from '../../config/load.ts';
import type { Cli } from '../cli.ts';

const configFile = '/etc/rankd/rankd.yaml';
/** The file of the unit's LoadCredential=. Without it, systemd does not start the service. */
const keyFile = '/etc/rankd/roblox.key';

/** What is left to do by hand once the unit is there: put settings and key where the service reads them, then start it. */
export async function nextSteps(cli: Cli): Promise<string> {
  const loaded = await cli.loadConfig().catch(() => undefined);
  return `next:
${[keyStep(loaded), settingsStep(loaded)].map((step) => `  ${step}`).join('\n')}
  systemctl enable --now rankd
Commands work on its data with --data-dir /var/lib/rankd, as root.`;
}

function keyStep(loaded: LoadedConfig | undefined): string {
  if (loaded?.file !== undefined && loaded.config.platform.kind === 'simulated') {
    return `install -D -m 600 /dev/null ${keyFile}   (the group is simulated and needs no key, but the unit asks for the file)`;
  }
  const named = loaded?.origins.get('platform.api_key_file');
  if (loaded?.file === undefined || named?.source !== 'file' || typeof named.value !== 'string') {
    return `install -D -m 600 /dev/stdin ${keyFile}   (paste the Open Cloud key, then press Ctrl-D)`;
  }
  const current = resolve(dirname(loaded.file), named.value);
  return current === keyFile ? `chmod 600 ${keyFile}` : `install -D -m 600 ${current} ${keyFile}`;
}

function settingsStep(loaded: LoadedConfig | undefined): string {
  if (loaded?.file === undefined) return `put the settings into ${configFile}`;
  if (loaded.file === configFile) return `chmod 644 ${configFile}`;
  const named = loaded.origins.get('platform.api_key_file');
  const isFoundThere = named?.source !== 'file' || resolve(dirname(configFile), String(named.value)) === keyFile;
  const note = isFoundThere ? '' : `   (and let platform.api_key_file say ${keyFile} there)`;
  return `install -D -m 644 ${loaded.file} ${configFile}${note}`;
}
