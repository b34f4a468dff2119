import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { basename } from 'node:path';
import { RankdError } from '../../errors.ts';
import type { Clock } from '../../ports.ts';
import { Connection } from './connection.ts';
import { migrations as released } from './migrations.ts';
import { notRankdDatabase } from './sqlite-error.ts';
import { createWorkspace } from './workspace.ts';

/**
 * Brings a database to the newest schema, an empty file included. An older one is copied first, to
 * `rankd.db.before-v<new version>`. Two processes can do this at once: the second finds it done.
 *
 * Throws `config_invalid` where the file is not rankd's and `schema_newer` where a later rankd wrote it; neither is
 * touched.
 */
export function migrate(db: Connection, clock: Pick<Clock, 'now'>, migrations: readonly string[] = released): void {
  const target = migrations.length;
  if (schemaVersion(db, target) === target) return;
  db.writeSync(() => {
    const version = schemaVersion(db, target);
    if (version === target) return;
    if (version > 0) copyDatabase(db.file, `${db.file}.before-v${target}`);
    for (const migration of migrations.slice(version)) db.execute(migration);
    if (version === 0) createWorkspace(db, clock);
    db.execute(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${target}`);
  });
}

/** How many migrations the database has seen; 0 where it is empty. */
function schemaVersion(db: Connection, newestKnown: number): number {
  const { id, version, objects } = db.get<{ id: number; version: number; objects: number }>(headerSql) ?? emptyHeader;
  if (id === 0 && version === 0 && objects === 0) return 0;
  if (id !== applicationId) throw notRankdDatabase(db.file);
  if (version > newestKnown) {
    throw new RankdError(
      'schema_newer',
      `The database ${db.file} has schema ${version}, written by a newer rankd; this one knows up to ${newestKnown}.`,
      { hint: `install that newer rankd, or restore the copy that it made (${basename(db.file)}.before-v${version})` },
    );
  }
  return version;
}

/**
 * Writes a private copy of a database whose write lock is held, so that nothing can change before the migration does.
 * A copy of an earlier attempt is replaced, and only by a complete one.
 */
function copyDatabase(from: string, to: string): void {
  const unfinished = `${to}.unfinished`;
  const source = new Connection(from);
  try {
    rmSync(unfinished, { force: true });
    closeSync(openSync(unfinished, 'wx', 0o600));
    source.run('VACUUM INTO @unfinished', { unfinished });
    const written = openSync(unfinished, 'r+');
    fsyncSync(written);
    closeSync(written);
    renameSync(unfinished, to);
  } finally {
    source.close();
    rmSync(unfinished, { force: true });
  }
}

/** "rnkd" in ASCII, in the header of the file (https://sqlite.org/fileformat.html#application_id). */
const applicationId = 0x726e6b64;

const headerSql = `
  SELECT (SELECT application_id FROM pragma_application_id) AS id,
         (SELECT user_version FROM pragma_user_version) AS version,
         (SELECT count(*) FROM sqlite_schema) AS objects`;

const emptyHeader = { id: 0, version: 0, objects: 0 };
