import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { System } from '../../base/system.ts';
import type { LoadedConfig } from '../../config/load.ts';
import type { Cli } from '../cli.ts';
import type { Io } from '../io.ts';
import type { ServiceManager, Step } from './service-manager.ts';

const daemonReload: Step = {
  program: 'systemctl',
  args: ['daemon-reload'],
  done: 'done: systemctl daemon-reload',
  onFailure: (command) => `systemd could not load it; run \`${command}\` as root`,
};

/** A system service that runs as the user rankd, with restricted access to the machine. */
export const systemd: ServiceManager = {
  kind: 'unit',
  fileName: 'rankd.service',
  folder: () => '/etc/systemd/system',
  isOwnFolder: false,
  encoding: 'utf8',
  text: ({ io }) => unitFor(io),
  register: () => [
    {
      program: 'systemd-sysusers',
      args: ['--inline', 'u rankd - "rankd, the rank service of a Roblox group" /var/lib/rankd'],
      done: 'done: the user rankd exists',
      // systemd-sysusers leaves an existing user unchanged
      onFailure: () =>
        'systemd could not create the user; run `useradd --system --home-dir /var/lib/rankd rankd` as root',
    },
    daemonReload,
  ],
  unregister: () => [
    {
      program: 'systemctl',
      args: ['disable', '--now', 'rankd'],
      done: 'done: the daemon is stopped, and no longer starts',
      onFailure: (command) => `systemd could not stop the daemon; run \`${command}\` as root`,
    },
  ],
  afterRemoval: [daemonReload],
  next: nextSteps,
  warning: ({ io }) => {
    const path = hiddenPath(io.command);
    return (
      path &&
      `the service can't access ${path}, because it has no access to home folders and temporary files
try: put rankd and Node.js where every user can read them, such as /opt/rankd, and run this command from there`
    );
  },
};

function unitFor({ command, packageDir }: Pick<Io, 'command' | 'packageDir'>): string {
  const unit = readFileSync(join(packageDir, 'config', 'rankd.service'), 'utf8');
  return unit.replaceAll(/^(Exec\w+=)\S+/gm, (_, name: string) => name + command.map(quoted).join(' '));
}

/** Returns the first path in the command that the unit's ProtectHome= or PrivateTmp= hides. */
function hiddenPath(command: readonly string[]): string | undefined {
  return command.find((path) => /^\/(home|root|run\/user|tmp|var\/tmp)\//.test(path));
}

/** Quotes one command-line word. Source: systemd.service(5), "Command lines". */
function quoted(word: string): string {
  const escaped = word.replaceAll('%', '%%').replaceAll('$', '$$$$');
  return /[\s"'\\;]/.test(escaped) ? `"${escaped.replaceAll(/["\\]/g, '\\$&')}"` : escaped;
}

const configFile = '/etc/rankd/rankd.yaml';
/**
 * The file that the unit's LoadCredential= names; without it, systemd does not start the service. It belongs to the
 * user rankd, because that user's commands read it, too.
 */
const keyFile = '/etc/rankd/roblox.key';

async function nextSteps(cli: Cli): Promise<string> {
  const loaded = await cli.loadConfig().catch(() => undefined);
  const { system, env } = cli.io;
  const invoker = env['SUDO_USER'];
  const sudo = invoker === undefined ? '' : 'sudo ';
  return `next:
${databaseStep(cli, invoker)}${keyStep(loaded, system, sudo)}
${settingsStep(loaded, system, sudo)}
  ${sudo}systemctl enable --now rankd
Run commands on its data as the user rankd: sudo -u rankd rankd status --data-dir /var/lib/rankd`;
}

/** The service starts with an empty database, which accepts no game's key until the existing keys are copied. */
function databaseStep({ io: { serviceDataDir } }: Cli, invoker: string | undefined): string {
  if (serviceDataDir === undefined || existsSync(join(serviceDataDir, 'rankd.db'))) return '';
  const [asInvoker, asRoot] = invoker === undefined ? ['', ''] : [`sudo -u ${invoker} `, 'sudo '];
  return `If your games already have keys, copy them to the service:
  ${asInvoker}rankd backup keys.db && ${asRoot}rankd restore -y --data-dir ${serviceDataDir} keys.db
Then set up the service:
`;
}

function keyStep(loaded: LoadedConfig | undefined, system: System, sudo: string): string {
  const install = `${sudo}install -D -m 600 --owner=rankd`;
  if (loaded?.file !== undefined && loaded.config.platform.kind === 'simulated') {
    return `The group is simulated and needs no key, but the unit requires the file:
  ${install} /dev/null ${keyFile}`;
  }
  const named = loaded?.origins.get('platform.api_key_file');
  if (loaded?.file === undefined || named?.source !== 'file' || typeof named.value !== 'string') {
    return `Type this, paste the Roblox key, press Enter, then press Ctrl-D:
  ${install} /dev/stdin ${keyFile}`;
  }
  const current = resolve(dirname(loaded.file), named.value);
  return current === keyFile
    ? `  ${sudo}chown rankd ${keyFile} && ${sudo}chmod 600 ${keyFile}`
    : `  ${install} ${system.quote(current)} ${keyFile}`;
}

function settingsStep(loaded: LoadedConfig | undefined, system: System, sudo: string): string {
  if (loaded?.file === undefined) return `Put the settings into ${configFile}, then start the service:`;
  if (loaded.file === configFile) return `  ${sudo}chmod 644 ${configFile}`;
  const named = loaded.origins.get('platform.api_key_file');
  const isFoundThere = named?.source !== 'file' || resolve(dirname(configFile), String(named.value)) === keyFile;
  const note = isFoundThere
    ? ''
    : `\nIn ${configFile}, set platform.api_key_file to ${keyFile}, then start the service:`;
  return `  ${sudo}install -D -m 644 ${system.quote(loaded.file)} ${configFile}${note}`;
}
