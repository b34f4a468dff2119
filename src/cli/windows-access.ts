import { win32 } from 'node:path';
import { promisify } from 'node:util';

/**
 * Reads the access control list (ACL) of a file or folder on Windows, as an SDDL string. Returns `undefined` if that
 * fails.
 */
export async function readAccessList(
  path: string,
  env: Record<string, string | undefined>,
): Promise<string | undefined> {
  const { execFile } = await import('node:child_process');
  // an absolute path, because Windows searches the current folder first
  const powershell = win32.join(systemFolder(env), 'WindowsPowerShell', 'v1.0', 'powershell.exe');
  const line = ['-NoProfile', '-NonInteractive', '-Command', '(Get-Acl -LiteralPath $env:RANKD_ASKED_PATH).Sddl'];
  const output = promisify(execFile)(powershell, line, { env: { ...env, RANKD_ASKED_PATH: path }, timeout: timeoutMs });
  return output.then(
    ({ stdout }) => stdout.trim() || undefined,
    () => undefined,
  );
}

export function systemFolder(env: Record<string, string | undefined>): string {
  return win32.join(env['SystemRoot'] ?? 'C:\\Windows', 'System32');
}

const timeoutMs = 20_000;

/**
 * Returns the first large group of users that an ACL allows to read or write. `sddl` is the list as text
 * (https://learn.microsoft.com/windows/win32/secauthz/ace-strings).
 */
export function openGroupIn(sddl: string): string | undefined {
  if (/D:[A-Z]*NO_ACCESS_CONTROL/.test(sddl)) return 'Everyone';
  const entries = sddl.matchAll(/\((\w+);\w*;(\w+);[^;]*;[^;]*;([\w-]+)(?:;[^)]*)?\)/g);
  for (const [, type, rights = '', account = ''] of entries) {
    const group = openGroups[account];
    if (group !== undefined && allowing.has(`${type}`) && reachesData(rights)) return group;
  }
  return undefined;
}

/** Large groups, keyed by abbreviation or id: https://learn.microsoft.com/windows/win32/secauthz/sid-strings */
const openGroups: Record<string, string> = {
  WD: 'Everyone',
  'S-1-1-0': 'Everyone',
  AN: 'any user without an account',
  AU: 'every user who is logged on',
  'S-1-5-11': 'every user who is logged on',
  IU: 'every user who is logged on here',
  BU: 'every user of this machine',
  'S-1-5-32-545': 'every user of this machine',
  BG: 'guests',
  DU: 'every user of the domain',
};

/** Types of entries that allow access; other types deny or audit it. */
const allowing = new Set(['A', 'XA']);

/** True for FILE_READ_DATA, FILE_WRITE_DATA, or rights that include one of them. */
function reachesData(rights: string): boolean {
  if (/^0x/i.test(rights)) return (Number(rights) & 0x3) !== 0 || (Number(rights) & 0xd0000000) !== 0;
  return (rights.match(/../g) ?? []).some((right) => ['GA', 'GR', 'GW', 'FA', 'FR', 'FW', 'CC', 'DC'].includes(right));
}
