import { readFileSync, statSync } from 'node:fs';
import { platform } from 'node:os';
import { type PlatformPath, posix, win32 } from 'node:path';
import process from 'node:process';

/**
 * The differences between the systems that rankd runs on. Other code uses `thisSystem`, and only this file checks which
 * one it is.
 */
export interface System {
  readonly name: 'linux' | 'macos' | 'windows';
  /** The syntax of its paths. */
  readonly path: PlatformPath;
  /** The default path of this user's database. */
  dataDir(user: Account): string;
  /** The folder of this user's settings, where rankd looks for `rankd/rankd.yaml`. */
  configHome(user: Account): string;
  /** The configuration for all users; none if any user could put a file there. */
  readonly sharedConfig: string | undefined;
  /** The names of these two and of the data directory in help texts. */
  readonly defaults: { config: string; dataDir: string };
  /** The variable with the user's folder. */
  readonly homeVariable: string;
  /**
   * True if the socket on which a daemon answers commands is a file, which stays after a daemon was killed. On Windows,
   * it is a named pipe.
   */
  readonly hasSocketFiles: boolean;
  /**
   * True if mode bits define who may use a file. Elsewhere, a file has an access list, which it inherits from its
   * folder.
   */
  readonly hasModes: boolean;
  /** True if a folder can be synced to disk, as needed for a new name in it. NTFS stores names in a separate log. */
  readonly syncsFolders: boolean;
  /** Errors that last until another program, such as a virus scanner, has closed the file to be replaced. */
  readonly passingRenameErrors: readonly string[];
  /** The signals that stop the process. */
  readonly stopSignals: readonly NodeJS.Signals[];
  /**
   * The effect of SIGHUP on a daemon. Windows sends it if the console is closed
   * (https://nodejs.org/api/process.html#signal-events).
   */
  readonly hangUp: 'reload' | 'stop';
  /** The manager that starts the daemon with the machine or with its user. */
  readonly serviceManager: 'systemd' | 'launchd' | 'task scheduler';
  /**
   * The data directory of a machine-wide service; none if any user could put a folder there, or if services belong to
   * users.
   */
  readonly serviceDataDir: string | undefined;
  /**
   * An example from a help text, which is written for Linux, in this system's shell syntax; `undefined` if it is only
   * for Linux.
   */
  example(line: string): string | undefined;
  /** Quotes a word for its shell: bash, zsh and the like, or PowerShell. */
  quote(word: string): string;
  /** A command that posts JSON to rankd. */
  post(request: { url: string; secret: string; body: object }): string;
  /** Commands for its shell. */
  readonly commands: {
    makeFolder(path: string): string;
    remove(path: string): string;
    /** Restricts a file, or a folder with its content, to this user. */
    closeFile(path: string): string;
    closeFolder(path: string): string;
    synchronizeClock: string;
  };
  /** The program that opens an address in the user's browser, with its arguments before the address. */
  readonly browser: readonly [program: string, ...args: string[]];
  /** The kind of shared file system, on which a database is not safe; `type` is from statfs(2). */
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
  serviceManager: 'launchd',
  serviceDataDir: undefined,
  example: (line) => (/systemd|\/var\/lib\//.test(line) ? undefined : line.replace(/^sudo /, '')),
  commands: { ...linux.commands, synchronizeClock: 'sudo sntp -sS time.apple.com' },
  browser: ['open'],
  sharedFileSystem: () => undefined, // its numbers of file systems differ between releases
};

const windows: System = {
  name: 'windows',
  path: win32,
  dataDir: ({ env, home }) =>
    win32.join(folder(win32, env['LOCALAPPDATA'], win32.join(home, 'AppData', 'Local')), 'rankd'),
  configHome: ({ env, home }) => folder(win32, env['APPDATA'], win32.join(home, 'AppData', 'Roaming')),
  sharedConfig: undefined, // every user may create a folder in C:\ProgramData
  defaults: { config: '.\\rankd.yaml, %APPDATA%\\rankd\\rankd.yaml', dataDir: '%LOCALAPPDATA%\\rankd' },
  homeVariable: 'USERPROFILE',
  hasSocketFiles: false,
  hasModes: false,
  syncsFolders: false,
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
  // Windows PowerShell drops quotes within the arguments of a program, but not in its piped input.
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

/** The user of this process; `undefined` on Windows. Unlike `userInfo()`, it works for a user id without an account. */
export function ownUid(): number | undefined {
  return process.geteuid?.();
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
