import { lstatSync, realpathSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';

const [others, sticky] = [0o002, 0o1000];

/**
 * The directory through which another user of the machine could have put a socket of their own in this one's place; `undefined` if there is
 * none. Root, the process's own user and the owner of the socket's directory are trusted, as whoever set up the directories above it chose
 * that one. libpq asks the kernel who has bound the socket (`requirepeer`); Node.js has no call for that.
 */
export function openDirectory({ host, port }: { host: string; port: number }): string | undefined {
  const { uid: ownUid } = userInfo();
  const directory = realpathSync(host);
  let entry = lstatSync(join(directory, `.s.PGSQL.${port}`), { throwIfNoEntry: false });
  for (let path = directory; ; path = dirname(path)) {
    const stats = statSync(path);
    const { uid, mode } = stats;
    const isTrusted = (owner: number) => owner === 0 || owner === ownUid;
    const isEntrySafe = (mode & sticky) !== 0 && entry !== undefined && (isTrusted(entry.uid) || entry.uid === uid);
    if (path !== directory && !isTrusted(uid)) return path;
    if ((mode & others) !== 0 && !isEntrySafe) return path;
    if (path === dirname(path)) return undefined;
    entry = stats;
  }
}
