import { existsSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { RankdError } from '../errors.ts';
import { thisSystem } from '../system.ts';

/**
 * The file that would be replaced: what links of these users (by uid) and of root lead to; the path itself if there is none or it is a folder.
 *
 * Throws `no_permission` for another user's link, which could lead to any file of ours, and `usage` for what is neither a file nor a folder.
 */
export function behindLinks(path: string, users: readonly number[]): string {
  if (!existsSync(path)) return path;
  if (statSync(path).isDirectory()) return path;
  if (!statSync(path).isFile()) throw notFile(path);
  const found = lstatSync(path);
  if (!found.isSymbolicLink()) return realpathSync(path);
  if (![0, ...users].includes(found.uid)) throw foreignLink(path, found.uid);
  return behindLinks(resolve(realpathSync(dirname(path)), readlinkSync(path)), users);
}

function notFile(path: string): RankdError {
  return new RankdError('usage', `${path} is neither a file nor a folder; no backup can take its place.`, {
    hint: 'choose another name; `rankd backup -` writes to standard output',
  });
}

function foreignLink(path: string, uid: number): RankdError {
  return new RankdError('no_permission', `${path} is a link of another user (uid ${uid}) and was not followed.`, {
    hint: `choose another name, in a folder that only you write to, or remove the link: ${thisSystem.commands.remove(path)}`,
  });
}
