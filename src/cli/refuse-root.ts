import { type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { RankdError } from '../base/errors.ts';
import { systemUserName } from '../base/system.ts';
import { withoutKeys } from '../core/api-key.ts';
import type { Io } from './io.ts';

/**
 * Throws `no_permission` if root uses another user's data directory, or would create one in another user's folder,
 * because that user could place links there that make root read or overwrite any file. The hint repeats the typed
 * arguments, `line`.
 */
export function refuseRoot(dataDir: string, io: Pick<Io, 'user' | 'env' | 'system'>, line: readonly string[]): void {
  if (io.user?.uid !== rootId) return;
  const place = existing(dataDir);
  if (place === undefined || place.uid === rootId) return;
  const name = systemUserName(place.uid);
  const whose =
    place.path === dataDir ? `belongs to the user ${name}` : `would be in ${place.path}, which belongs to ${name}`;
  throw new RankdError('no_permission', `The data directory ${dataDir} ${whose}; rankd does not use it as root.`, {
    hint: asOwner(name, io, line),
  });
}

const rootId = 0;

/**
 * Returns the path or its closest existing parent. Returns `undefined` if that can't be read; a later step reports the
 * error.
 */
function existing(path: string): { path: string; uid: number } | undefined {
  let stats: Stats | undefined;
  try {
    stats = statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
  return stats === undefined ? existing(dirname(path)) : { path, uid: stats.uid };
}

/** Returns the sudo command that runs `line` as the owner. sudo drops variables that are not preserved explicitly. */
function asOwner(name: string, { env, system }: Pick<Io, 'env' | 'system'>, line: readonly string[]): string {
  const settings = Object.keys(env).filter((variable) => /^RANKD_\w+$/.test(variable));
  const keep = settings.length === 0 ? [] : [`--preserve-env=${settings.sort().join(',')}`];
  const words = [...keep, '-u', name].map((word) => (/^[\w.=,-]+$/.test(word) ? word : system.quote(word)));
  return withoutKeys(['sudo', ...words, 'rankd', ...line.map(system.quote)].join(' '));
}
