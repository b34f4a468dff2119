import { closeSync, existsSync, openSync, realpathSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, sep } from 'node:path';
import { RankdError } from '../base/errors.ts';
import { copyBytes } from '../base/files/copy-bytes.ts';
import { behindLinks } from '../base/files/links.ts';
import { ScratchDirectory } from '../base/files/scratch-directory.ts';
import { writeWhole } from '../base/files/write-whole.ts';
import { crypto } from '../base/node-modules.ts';
import type { Backup, BackupTarget, StoreOperations } from '../ports/index.ts';
import type { Rights } from './rights.ts';

/**
 * The operations where root acts as the owner of the data directory. A file that the command names is the caller's, unless it is in that
 * directory. Its bytes cross by a copy of the owner's and through descriptors, so that neither user opens a name that the other could
 * turn into a link.
 */
export function acrossUsers(operations: StoreOperations, dataDir: string, rights: Rights): StoreOperations {
  if (!rights.areAnothers) return operations;
  const place = { dataDir, rights };
  return {
    ...operations,
    backUp: (target) => backUp(operations, target, place),
    examineBackup: (file) => withCopy(file, place, (copy) => operations.examineBackup(copy)),
    restore: (order) => withCopy(order.file, place, (file) => operations.restore({ ...order, file })),
  };
}

interface Place {
  dataDir: string;
  rights: Rights;
}

async function backUp(
  operations: Pick<StoreOperations, 'backUp'>,
  { file, mayReplace }: BackupTarget,
  place: Place,
): Promise<Backup> {
  const { dataDir, rights } = place;
  if (isWithin(place, file)) return operations.backUp({ file, mayReplace });
  const to = rights.asCaller(() => behindLinks(file, []));
  if (isWithin(place, to)) return operations.backUp({ file: to, mayReplace });
  using scratch = new ScratchDirectory(dataDir);
  const copy = join(scratch.path, 'copy.db');
  const backup = await operations.backUp({ file: copy, mayReplace: false });
  const from = openSync(copy, 'r');
  try {
    const unfinished = `${to}.unfinished-${crypto().randomBytes(4).toString('hex')}`;
    rights.asCaller(() => writeWhole({ to, unfinished, mayReplace }, (_, descriptor) => copyBytes(from, descriptor)));
  } finally {
    closeSync(from);
  }
  return backup;
}

/** Runs `work` on a file of the owner's with the bytes of the caller's file, and with those of its write-ahead log if it has one. */
async function withCopy<T>(file: string, place: Place, work: (copy: string) => Promise<T>): Promise<T> {
  const { dataDir, rights } = place;
  const isFile = () => statSync(file, { throwIfNoEntry: false })?.isFile() === true;
  if (isWithin(place, file) || !rights.asCaller(isFile)) return work(file);
  using scratch = new ScratchDirectory(existsSync(dataDir) ? dataDir : tmpdir());
  const copy = join(scratch.path, basename(file));
  for (const suffix of ['', '-wal']) takeCopy(rights, file + suffix, copy + suffix);
  try {
    return await work(copy);
  } catch (error) {
    throw error instanceof RankdError ? renamed(error, copy, file) : error;
  }
}

function takeCopy(rights: Rights, from: string, to: string): void {
  const source = rights.asCaller(() => (existsSync(from) ? openSync(from, 'r') : undefined));
  if (source === undefined) return;
  const target = openSync(to, 'wx', 0o600);
  try {
    copyBytes(source, target);
  } finally {
    closeSync(source);
    closeSync(target);
  }
}

/** Whether the path leads into the data directory, whose owner decides what it is there. */
function isWithin({ dataDir, rights }: Place, path: string): boolean {
  const namesOf = (folder: string) => (existsSync(folder) ? [folder, realpathSync(folder)] : [folder]);
  const { folders, places } = rights.asCaller(() => ({ folders: namesOf(dirname(path)), places: namesOf(dataDir) }));
  return folders.some((folder) => places.some((place) => folder === place || folder.startsWith(place + sep)));
}

/** The error in terms of the file that the caller named. */
export function renamed({ code, message, hint, cause }: RankdError, copy: string, file: string): RankdError {
  return new RankdError(code, message.replaceAll(copy, file), {
    ...(hint !== undefined && { hint: hint.replaceAll(copy, file) }),
    cause,
  });
}
