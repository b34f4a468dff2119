import { readFileSync, statSync } from 'node:fs';
import { platform } from 'node:os';
import { type PlatformPath, posix, win32 } from 'node:path';

/**
 * The differences between the systems that rankd runs on. Other code uses `thisSystem`, and only this file checks which
 * one it is.
 */
export interface System {
  readonly name: 'linux' | 'macos' | 'windows';
  /** How its paths are written. */
  readonly path: PlatformPath;
  /** Where the database of this user lies if nobody says otherwise. */
  dataDir(user: Account): string;
  /** The folder of this user's settings, in which `rankd/rankd.yaml` is looked for. */
  configHome(user: Account): string;
  /** The configuration for all users; none if any user could put a file there. */
  readonly sharedConfig: string | undefined;
  /** The same two and the data directory as help texts name them. */
  readonly defaults: { config: string; dataDir: string };
  /** The variable that names the user's folder. */
  readonly homeVariable: string;
  /** Whether the socket on which a daemon answers commands is a file, which outlives a daemon that is killed. On Windows it is a named pipe. */
  readonly hasSocketFiles: boolean;
  /** Whether mode bits say who may use a file. Elsewhere it has an access list, which it inherits from its folder. */
  readonly hasModes: boolean;
  /** Whether a folder can be forced to the disk, as a new name in it must be. NTFS keeps names in a log of its own. */
  readonly syncsFolders: boolean;
  /** Whether it tells of a removed or cut file before anything that was sent afterwards. */
  readonly tellsOfHarmFirst: boolean;
  /** The errors that end as soon as another program, such as a virus scanner, has closed the file that was to be replaced. */
  readonly passingRenameErrors: readonly string[];
  /** The signals that ask the process to stop. */
  readonly stopSignals: readonly NodeJS.Signals[];
  /**
   * The effect of SIGHUP on a daemon. Windows sends it if the console is closed
   * (https://nodejs.org/api/process.html#signal-events).
   */
  readonly hangUp: 'reload' | 'stop';
  /** The manager that starts the daemon with the machine or with its user. */
  readonly serviceManager: 'systemd' | 'launchd' | 'task scheduler';
  /** Where a service of the whole machine has its data; none if any user could put a folder there, or if services are users' own. */
  readonly serviceDataDir: string | undefined;
  /** An example of a help text, which is written for Linux, as its shell reads it; `undefined` if it is about Linux alone. */
  example(line: string): string | undefined;
  /** A word as its shell reads it: bash, zsh and the like, or PowerShell. */
  quote(word: string): string;
  /** A command that posts JSON to rankd. */
  post(request: { url: string; secret: string; body: object }): string;
  /** Commands for its shell. */
  readonly commands: {
    makeFolder(path: string): string;
    remove(path: string): string;
    /** Leaves a file or a folder with all in it to this user alone. */
    closeFile(path: string): string;
    closeFolder(path: string): string;
    synchronizeClock: string;
  };
  /** The program that opens an address in the user's browser, with its arguments before the address. */
  readonly browser: readonly [program: string, ...args: string[]];
  /** The kind of shared file system, on which a database is not safe; `type` as statfs(2) tells it. */
  sharedFileSystem(path: string, type: number): string | undefined;
}

interface Account {
  env: Record<string, string | undefined>;
  home: string;
}

const linux: System = {
  name: 'linux',
  path: posix,
  // systemd lists every StateDirectory= of the unit, separated by colons.
  dataDir: ({ env, home }) =>
    env['STATE_DIRECTORY']?.split(':')[0] ||
    posix.join(folder(posix, env['XDG_DATA_HOME'], posix.join(home, '.local', 'share')), 'rankd'),
  configHome: ({ env, home }) => folder(posix, env['XDG_CONFIG_HOME'], posix.join(home, '.config')),
  sharedConfig: '/etc/rankd/rankd.yaml',
  defaults: {
    config: './rankd.yaml, ~/.config/rankd/rankd.yaml, /etc/rankd/rankd.yaml',
    dataDir: '~/.local/share/rankd',
  },
  homeVariable: 'HOME',
  hasSocketFiles: true,
  hasModes: true,
  syncsFolders: true,
  tellsOfHarmFirst: true, // inotify(7)
  passingRenameErrors: [],
  stopSignals: ['SIGINT', 'SIGTERM'],
  hangUp: 'reload',
  serviceManager: 'systemd',
  serviceDataDir: '/var/lib/rankd',
  example: (line) => line,
  quote: (word) => (/^[\w./:@+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`),
  post: ({ url, secret, body }) =>
    `curl -sw '\\n' '${url}' -H 'Authorization: Bearer ${secret}' -d '${JSON.stringify(body)}'`,
  commands: {
    makeFolder: (path) => `mkdir -p ${linux.quote(path)}`,
    remove: (path) => `rm ${linux.quote(path)}`,
    closeFile: (path) => `chmod 600 ${linux.quote(path)}`,
    closeFolder: (path) => `chmod -R go= ${linux.quote(path)}`,
    synchronizeClock: 'timedatectl set-ntp true',
  },
  browser: ['xdg-open'],
  sharedFileSystem: (_, type) => sharedFileSystems[type],
};

/** Types of file systems on which a database is not safe. Source: statfs(2) and linux/magic.h. */
const sharedFileSystems: Record<number, string> = {
  26985: 'NFS',
  20859: 'SMB',
  4283649346: 'CIFS',
  4266872130: 'SMB2',
  16914839: '9p',
  1702057286: 'FUSE',
};

const macos: System = {
  ...linux,
  name: 'macos',
  tellsOfHarmFirst: false,
  serviceManager: 'launchd',
  serviceDataDir: undefined,
  example: (line) => (/systemd|\/var\/lib\//.test(line) ? undefined : line.replace(/^sudo /, '')),
  commands: { ...linux.commands, synchronizeClock: 'sudo sntp -sS time.apple.com' },
  browser: ['open'],
  sharedFileSystem: () => undefined, // its numbers of file systems differ from one release to the next
};

const windows: System = {
  name: 'windows',
  path: win32,
  dataDir: ({ env, home }) =>
    win32.join(folder(win32, env['LOCALAPPDATA'], win32.join(home, 'AppData', 'Local')), 'rankd'),
  configHome: ({ env, home }) => folder(win32, env['APPDATA'], win32.join(home, 'AppData', 'Roaming')),
  sharedConfig: undefined, // every user may make a folder in C:\ProgramData
  defaults: { config: '.\\rankd.yaml, %APPDATA%\\rankd\\rankd.yaml', dataDir: '%LOCALAPPDATA%\\rankd' },
  homeVariable: 'USERPROFILE',
  hasSocketFiles: false,
  hasModes: false,
  syncsFolders: false,
  tellsOfHarmFirst: false,
  passingRenameErrors: ['EPERM', 'EACCES', 'EBUSY'],
  stopSignals: ['SIGINT', 'SIGTERM', 'SIGBREAK'],
  hangUp: 'stop',
  serviceManager: 'task scheduler',
  serviceDataDir: undefined,
  example: (line) => {
    if (/'|&&|systemd|\| man |(^|\s)[~/]/.test(line)) return undefined;
    const [, command = line.replace(/^sudo /, ''), input] = /^(.+) < (\S+)$/.exec(line) ?? [];
    return input === undefined ? command : `Get-Content ${input} | ${command}`; // PowerShell has no <
  },
  quote: (word) => (/^[\w.:\\/@+-]+$/.test(word) ? word : `"${word.replaceAll(/[`"$]/g, '`$&')}"`),
  // Windows PowerShell drops the quotes within what it hands to a program, but not those in what it pipes to one.
  post: ({ url, secret, body }) =>
    `"${JSON.stringify(body).replaceAll(/[`"$]/g, '`$&')}" | curl.exe -s "${url}" -H "Authorization: Bearer ${secret}" -d "@-"`,
  commands: {
    makeFolder: (path) => `mkdir ${windows.quote(path)}`,
    remove: (path) => `del ${windows.quote(path)}`,
    closeFile: (path) => `icacls ${windows.quote(path)} /inheritance:r /grant:r "\${env:USERNAME}:F"`,
    closeFolder: (path) => `icacls ${windows.quote(path)} /inheritance:r /grant:r "\${env:USERNAME}:(OI)(CI)F"`,
    synchronizeClock: 'w32tm /resync',
  },
  browser: ['rundll32', 'url.dll,FileProtocolHandler'],
  sharedFileSystem: (path) => (/^\\\\(?![.?]\\)/.test(win32.resolve(path)) ? 'a network share' : undefined),
};

export const systems = { linux, macos, windows };

const byPlatform: Partial<Record<NodeJS.Platform, System>> = { win32: windows, darwin: macos };

/** The system that this process runs on. */
export const thisSystem: System = byPlatform[platform()] ?? linux;

/** A variable's folder, unless it is empty or, as the XDG base directory specification demands, relative. */
function folder(path: PlatformPath, named: string | undefined, otherwise: string): string {
  return named !== undefined && path.isAbsolute(named) ? named : otherwise;
}

/** A user of the operating system, by number. */
export interface SystemUser {
  uid: number;
  /** The user's own group. */
  gid: number;
}

/** The user's name by /etc/passwd. A user who is not in that file is `#1000`, which sudo accepts as well. */
export function systemUserName(uid: number): string {
  const entries = passwd().map((line) => line.split(':'));
  return entries.find(([, , id]) => id === String(uid))?.[0] ?? `#${uid}`;
}

/** The name of the user who owns the file or folder, as above. */
export function ownerOf(path: string): string {
  return systemUserName(statSync(path).uid);
}

function passwd(): string[] {
  try {
    return readFileSync('/etc/passwd', 'utf8').split('\n');
  } catch {
    return [];
  }
}
