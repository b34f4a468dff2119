import { readFileSync, statSync } from 'node:fs';

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
