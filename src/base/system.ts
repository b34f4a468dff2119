import { existsSync, readFileSync, statSync } from 'node:fs';
import { platform } from 'node:os';
import { type PlatformPath, posix, win32 } from 'node:path';
import process from 'node:process';

/** The differences between operating systems. Only this file checks the current one; other code uses `thisSystem`. */
export interface System {
  readonly name: 'linux' | 'macos' | 'windows';
  readonly path: PlatformPath;
  dataDir(user: Account): string;
  /** Returns the folder in which rankd looks for `rankd/rankd.yaml`. */
  configHome(user: Account): string;
  /** The configuration file for all users; undefined on a system where any user could create it. */
  readonly sharedConfig: string | undefined;
  readonly defaults: { config: string; dataDir: string };
  readonly homeVariable: string;
  /**
   * True if the daemon's control socket is a file, which a killed daemon leaves behind. On Windows, it is a named pipe.
   */
  readonly hasSocketFiles: boolean;
  /** True if mode bits control access to files. On Windows, a file inherits its folder's ACL instead. */
  readonly hasModes: boolean;
  /** True if a folder must be synced to disk after a file is created in it. NTFS journals such changes itself. */
  readonly syncsFolders: boolean;
  /**
   * The error codes of renames that fail only while another program, such as a virus scanner, has the replaced file
   * open.
   */
  readonly passingRenameErrors: readonly string[];
  readonly stopSignals: readonly NodeJS.Signals[];
  /**
   * How a daemon reacts to SIGHUP, which Node.js raises on Windows when the console is closed
   * (https://nodejs.org/api/process.html#signal-events).
   */
  readonly hangUp: 'reload' | 'stop';
  readonly serviceManager: 'systemd' | 'launchd' | 'task scheduler';
  /**
   * The data directory of a machine-wide service; undefined if services belong to users, or if any user could create
   * the directory.
   */
  readonly serviceDataDir: string | undefined;
  /**
   * Converts a Linux example from a help text to this system's shell syntax. Returns `undefined` if it applies only to
   * Linux.
   */
  example(line: string): string | undefined;
  /** Quotes a word for a POSIX shell or PowerShell. */
  quote(word: string): string;
  post(request: { url: string; secret: string; body: object }): string;
  readonly commands: {
    makeFolder(path: string): string;
    remove(path: string): string;
    /** Makes a file accessible only to this user; `restrictFolder` does the same for a folder and its contents. */
    restrictFile(path: string): string;
    restrictFolder(path: string): string;
    /** Describes how to fix a wrong clock, with the command if the system has one. */
    synchronizeClock(): string;
  };
  /** The command that opens a URL in the user's browser, once the URL is appended. */
  readonly browser: readonly [program: string, ...args: string[]];
  /**
   * Returns the name of a shared file system, which is not safe for a database; `undefined` for other file systems.
   * `type` is from statfs(2).
   */
  sharedFileSystem(path: string, type: number): string | undefined;
}

interface Account {
  env: Record<string, string | undefined>;
  home: string;
}

const linux: System = {
  name: 'linux',
  path: posix,
  // systemd puts every StateDirectory= of the unit here, separated by colons.
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
    restrictFile: (path) => `chmod 600 ${linux.quote(path)}`,
    restrictFolder: (path) => `chmod -R go= ${linux.quote(path)}`,
    // as in sd_booted(3); a container has neither systemd nor its own clock
    synchronizeClock: () =>
      existsSync('/run/systemd/system')
        ? 'turn on NTP: sudo timedatectl set-ntp true'
        : 'turn on NTP on this machine; for a container, on its host',
  },
  browser: ['xdg-open'],
  sharedFileSystem: (_, type) => sharedFileSystems[type],
};

/** Keyed by the type that statfs(2) returns, from linux/magic.h. */
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
  commands: { ...linux.commands, synchronizeClock: () => 'synchronize it: sudo sntp -sS time.apple.com' },
  browser: ['open'],
  sharedFileSystem: () => undefined, // the types that macOS returns differ between releases
};

const windows: System = {
  name: 'windows',
  path: win32,
  dataDir: ({ env, home }) =>
    win32.join(folder(win32, env['LOCALAPPDATA'], win32.join(home, 'AppData', 'Local')), 'rankd'),
  configHome: ({ env, home }) => folder(win32, env['APPDATA'], win32.join(home, 'AppData', 'Roaming')),
  sharedConfig: undefined, // every user can create a folder in C:\ProgramData
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
  // Windows PowerShell drops the quotes in a program's arguments, but not in its piped input.
  post: ({ url, secret, body }) =>
    `"${JSON.stringify(body).replaceAll(/[`"$]/g, '`$&')}" | curl.exe -s "${url}" -H "Authorization: Bearer ${secret}" -d "@-"`,
  commands: {
    makeFolder: (path) => `mkdir ${windows.quote(path)}`,
    remove: (path) => `del ${windows.quote(path)}`,
    restrictFile: (path) => `icacls ${windows.quote(path)} /inheritance:r /grant:r "\${env:USERNAME}:F"`,
    restrictFolder: (path) => `icacls ${windows.quote(path)} /inheritance:r /grant:r "\${env:USERNAME}:(OI)(CI)F"`,
    // Windows does not start the service on a machine outside a domain
    synchronizeClock: () => 'synchronize it, in PowerShell as administrator: Start-Service w32time; w32tm /resync',
  },
  browser: ['rundll32', 'url.dll,FileProtocolHandler'],
  sharedFileSystem: (path) => (/^\\\\(?![.?]\\)/.test(win32.resolve(path)) ? 'a network share' : undefined),
};

export const systems = { linux, macos, windows };

const byPlatform: Partial<Record<NodeJS.Platform, System>> = { win32: windows, darwin: macos };

export const thisSystem: System = byPlatform[platform()] ?? linux;

/** Ignores empty and relative values, as the XDG Base Directory Specification requires. */
function folder(path: PlatformPath, named: string | undefined, fallback: string): string {
  return named !== undefined && path.isAbsolute(named) ? named : fallback;
}

export interface SystemUser {
  uid: number;
  gid: number;
}

/** Returns `undefined` on Windows. Unlike `userInfo()`, this works for a user id without an account. */
export function ownUid(): number | undefined {
  return process.geteuid?.();
}

/** Returns the user's name from /etc/passwd. If there is none, returns e.g. `#1000`, which sudo also accepts. */
export function systemUserName(uid: number): string {
  const entries = passwd().map((line) => line.split(':'));
  return entries.find(([, , id]) => id === String(uid))?.[0] ?? `#${uid}`;
}

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
