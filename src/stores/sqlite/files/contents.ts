import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { isOnReadOnlyFileSystem, privateFile } from '../../../base/data-dir.ts';
import { RankdError } from '../../../base/errors.ts';
import { asFileError, removeLeftScratch, ScratchDirectory, writeWhole } from '../../../base/files.ts';
import type {
  Backup,
  BackupTarget,
  Clock,
  CopiedContents,
  CopyPlace,
  StoreContents,
  StoredRow,
} from '../../../ports/index.ts';
import { type CopyTarget, copiedTables, copyContents, pagesOf } from '../../copy-contents.ts';
import { Connection } from '../engine/connection.ts';
import { migrate } from '../schema/migrate.ts';
import { schemaVersion } from '../schema/schema-version.ts';
import { backUp, refuseOwnFile, streamBackup } from './backup.ts';
import { acquireDaemonLock, daemonLockName } from './daemon-lock.ts';
import { examine, flawOf, newestRows, newestSchema } from './examine.ts';
import { copyDatabase, databaseName, hasDatabase, openExisting } from './existing.ts';
import { examineBackup } from './restore.ts';

export function directoryPlace(dataDir: string, clock: Clock): CopyPlace {
  return {
    text: dataDir,
    lockOutDaemons: async () => {
      if (hasDatabase(dataDir) && isOnReadOnlyFileSystem(dataDir)) return nothingToRelease; // no daemon can run here
      return acquireDaemonLock(dataDir);
    },
    read: async (work) => readFile(openExisting(dataDir), work, 'rankd db migrate'),
    fill: (contents) => fillDirectory(dataDir, contents, clock),
  };
}

export function backupPlace(file: string): CopyPlace {
  return {
    text: file,
    lockOutDaemons: async () => nothingToRelease,
    async read(work) {
      examineBackup(file);
      const db = new Connection(file, { isReadonly: true });
      return readFile(
        { db, close: () => db.close() },
        work,
        'restore it into a data directory with `rankd restore`, which migrates it, then copy that directory',
      );
    },
    fill: () =>
      Promise.reject(
        new RankdError('usage', `${file} is a file; the target of a copy must be a data directory or a database.`, {
          hint: 'to create a file, run `rankd backup FILE`',
        }),
      ),
  };
}

const nothingToRelease: AsyncDisposable = { [Symbol.asyncDispose]: async () => undefined };

async function readFile<T>(
  { db, close }: ReturnType<typeof openExisting>,
  work: (contents: StoreContents) => Promise<T>,
  migration: string,
): Promise<T> {
  try {
    db.execute('BEGIN'); // makes all reads see the same snapshot
    const schema = schemaVersion(db, newestSchema);
    if (schema < newestSchema) {
      throw new RankdError('conflict', `${db.file} has schema ${schema}; only schema ${newestSchema} can be copied.`, {
        hint: migration,
      });
    }
    return await work(contentsOf(db));
  } finally {
    close();
  }
}

function contentsOf(db: Connection): StoreContents {
  return {
    rows: (table) => pagesOf(table, { source: table, query: (sql, after) => db.all<StoredRow>(sql, after) }),
    numbers: async () => newestRows(db),
  };
}

async function fillDirectory(dataDir: string, contents: StoreContents, clock: Clock): Promise<CopiedContents> {
  if (hasDatabase(dataDir)) throw notEmpty(dataDir);
  removeLeftScratch(dataDir);
  return inScratchDirectory(dataDir, contents, clock, async (scratch, copied) => {
    const to = join(dataDir, databaseName);
    const write = (unfinished: string) => copyDatabase(join(scratch, databaseName), unfinished);
    writeWhole({ to, unfinished: `${to}.copying`, mayReplace: false }, write);
    return copied;
  });
}

/** Returns backup operations that write another engine's data to an SQLite file, which `rankd restore` can read. */
export function portableBackups(
  dataDir: string,
  clock: Clock,
  read: CopyPlace['read'],
): {
  backUp(target: BackupTarget): Promise<Backup>;
  streamBackup(send: (chunk: Uint8Array) => Promise<void>): Promise<Backup>;
} {
  const within = <T>(use: (scratch: string) => Promise<T>) =>
    read((contents) => inScratchDirectory(dataDir, contents, clock, use));
  return {
    backUp: async (target) => {
      refuseOwnFile(dataDir, target.file);
      return within(async (scratch) => backUp({ dataDir: scratch, ...target }));
    },
    streamBackup: (send) => within((scratch) => streamBackup(scratch, send)),
  };
}

/** Fills a database in a temporary directory, calls `use`, then removes the directory. */
async function inScratchDirectory<T>(
  dataDir: string,
  contents: StoreContents,
  clock: Clock,
  use: (scratch: string, copied: CopiedContents) => Promise<T>,
): Promise<T> {
  privateFile(dataDir, daemonLockName); // creates the data directory
  using scratch = new ScratchDirectory(dataDir);
  const file = join(scratch.path, databaseName);
  const filled = async () => {
    closeSync(openSync(file, 'wx', 0o600));
    return fillFile(file, contents, clock);
  };
  const copied = await filled().catch((error) => {
    throw asFileError(error, file);
  });
  return await use(scratch.path, copied);
}

async function fillFile(file: string, contents: StoreContents, clock: Clock): Promise<CopiedContents> {
  const db = new Connection(file);
  try {
    db.execute('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF'); // a temporary file need not survive a crash
    migrate(db, clock, { makesCopy: false });
    const guards = db.all<{ name: string; sql: string }>(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'`);
    for (const { name } of guards) db.execute(`DROP TRIGGER ${name}`);
    for (const table of Object.keys(copiedTables)) db.run(`DELETE FROM ${table}`);
    const copied = await copyContents(contents, targetOn(db));
    for (const { sql } of guards) db.execute(sql);
    const flaw = flawOf(examine(db));
    if (flaw !== undefined)
      throw new RankdError('store_unavailable', `The copy failed its integrity check: ${flaw}.`, {
        hint: 'run `rankd db check` on the source',
      });
    return copied;
  } finally {
    db.close();
  }
}

function targetOn(db: Connection): CopyTarget {
  return {
    async insert(table, rows) {
      db.write(() => {
        for (const row of rows) {
          const columns = Object.keys(row);
          const values = columns.map((column) => `@${column}`);
          db.run(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${values.join(', ')})`, row);
        }
      });
    },
    async finish(numbers) {
      for (const [name, seq] of numbers) {
        db.run('DELETE FROM sqlite_sequence WHERE name = @name', { name });
        db.run('INSERT INTO sqlite_sequence (name, seq) VALUES (@name, @seq)', { name, seq });
      }
    },
    contents: contentsOf(db),
  };
}

function notEmpty(dataDir: string): RankdError {
  return new RankdError('already_exists', `${dataDir} already contains a rankd database; nothing was changed.`, {
    hint: 'name a directory without a database; rankd creates it if it is missing',
  });
}
