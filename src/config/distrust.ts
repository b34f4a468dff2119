import { lstatSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { SystemUser } from '../base/system-user.ts';

/**
 * Why a configuration that was found, not named, may come from somebody else; `undefined` if only this user, root, or whoever called
 * sudo could have written it. Who writes it decides where the Roblox key is sent, so a folder of another user must not bring one along.
 */
export function distrustOf(
  path: string,
  { user, env }: { user?: SystemUser | undefined; env: Record<string, string | undefined> },
): string | undefined {
  if (user === undefined) return undefined;
  const users = trusted(user.uid, env['SUDO_UID']);
  const groups = trusted(user.gid, env['SUDO_GID']); // where the umask is 002, nobody else is in a user's own group
  const isForeign = ({ uid }: { uid: number }) => !users.has(uid);
  const isOpen = ({ mode, gid }: { mode: number; gid: number }) =>
    (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && !groups.has(gid));

  const found = lookAt(path);
  if (found === undefined) return undefined;
  const { folder, entry, file } = found;
  if (isForeign(entry)) return `it belongs to another user (uid ${entry.uid})`;
  if (file !== undefined && isForeign(file)) return `it leads to a file of another user (uid ${file.uid})`;
  if (file !== undefined && isOpen(file)) return 'other users may write it';
  if (isForeign(folder)) return `its folder belongs to another user (uid ${folder.uid})`;
  return isOpen(folder) && !isSticky(folder)
    ? 'other users may replace it, as they may write to its folder'
    : undefined;
}

/** `undefined` if this user may not look; whoever reads the file is told so. */
function lookAt(path: string) {
  try {
    return { folder: statSync(dirname(path)), entry: lstatSync(path), file: statSync(path, { throwIfNoEntry: false }) };
  } catch {
    return undefined;
  }
}

function trusted(own: number, ofSudo: string | undefined): Set<number> {
  return new Set([0, own, ...(ofSudo ? [Number(ofSudo)] : [])]);
}

/** In such a folder, as /tmp is one, each user may remove and rename only their own files. */
function isSticky({ mode }: { mode: number }): boolean {
  return (mode & 0o1000) !== 0;
}
