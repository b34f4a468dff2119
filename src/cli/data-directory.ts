import { closeSync, openSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { codeOf } from '../base/error-code.ts';
import { RankdError } from '../base/errors.ts';
import { dataDirectory } from '../config/data-dir.ts';
import type { Io } from './io.ts';

/**
 * Where the database lies, as an absolute path. From here on root acts as the owner of that directory, or of the folder in which it would be
 * made: the owner decides what each name in there leads to, so a command with root's rights could be led to any file of the machine.
 *
 * Throws `no_permission` if root can't act as that user, or that user can't do what is asked for.
 */
export function enterDataDirectory(flag: string | undefined, io: Io): string {
  const dataDir = dataDirectory(flag, io);
  const place = io.rights.user?.uid === rootId ? existing(dataDir) : undefined;
  if (place !== undefined && place.stats.uid !== rootId) actForOwner({ ...place, dataDir }, io);
  return dataDir;
}

const rootId = 0;

interface Place {
  path: string;
  stats: Stats;
}

/** The path, or the nearest folder above it that exists. `undefined` if it can't be told: whoever opens the directory says why. */
function existing(path: string): Place | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats === undefined ? existing(dirname(path)) : { path, stats };
  } catch {
    return undefined;
  }
}

function actForOwner({ path, stats: { uid, gid }, dataDir }: Place & { dataDir: string }, io: Io): void {
  const owner = `another user (uid ${uid})`;
  try {
    io.rights.actAs({ uid, gid });
  } catch (cause) {
    throw new RankdError(
      'no_permission',
      `The data directory ${dataDir} is ${owner}'s, as whom rankd may not act here.`,
      {
        hint: `run the command as that user: sudo -u '#${uid}' rankd …`,
        cause,
      },
    );
  }
  if (isClosed(() => statSync(join(path, '.')))) {
    throw new RankdError('no_permission', `The data directory ${dataDir} is ${owner}'s, who may not reach it.`, {
      hint: `let that user enter every folder above it, or move it to where that user can, such as /var/lib/rankd`,
    });
  }
  const [, program] = io.command;
  if (isClosed(() => closeSync(openSync(program, 'r')))) {
    throw new RankdError('no_permission', `The data directory ${dataDir} is ${owner}'s, who may not read ${program}.`, {
      hint: 'put rankd where every user can read it, such as /opt/rankd, and run the command from there',
    });
  }
}

/** access(2) would tell what the caller may do, not the user whose rights hold. */
function isClosed(look: () => unknown): boolean {
  try {
    look();
    return false;
  } catch (error) {
    return codeOf(error) === 'EACCES';
  }
}
