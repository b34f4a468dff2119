import { writeWhole } from '../../../base/files.ts';
import { version as rankdVersion } from '../../../base/version.ts';
import type { Clock, Migration } from '../../../ports/index.ts';
import { newWorkspace } from '../../sql/workspace.ts';
import type { Connection } from '../engine/connection.ts';
import { sqliteDialect } from '../engine/statements.ts';
import { appendDigest } from '../files/backup.ts';
import { copyDatabase } from '../files/existing.ts';
import { migrations as released } from './migrations.ts';
import { applicationId, copyPathBefore, schemaVersion } from './schema-version.ts';

export interface MigrateOptions {
  migrations?: readonly string[];
  /** False if the database is itself a copy. */
  makesCopy?: boolean;
  /**
   * Prevents daemons from starting until the returned lock is released. Throws if a daemon or another node is using the
   * database. Called only if the database has an older schema.
   */
  lockOutDaemons?: ((version: number) => { release(): void }) | undefined;
}

/**
 * Migrates a database or an empty file to the newest schema. First copies an older database to
 * `rankd.db.before-v<new version>`. Of two concurrent migrations, the second does nothing.
 *
 * Throws `config_invalid` if the file is not a rankd database, and `schema_newer` if a newer version of rankd migrated
 * it. In both cases, the file is unchanged.
 */
export function migrate(
  db: Connection,
  clock: Pick<Clock, 'now'>,
  { migrations = released, makesCopy = true, lockOutDaemons }: MigrateOptions = {},
): Migration {
  const target = migrations.length;
  const done: Migration = { database: db.file, from: target, to: target, copy: null };
  if (schemaVersion(db, target) === target) return done;
  let lock: { release(): void } | undefined;
  const migrateOnce = () => {
    const version = schemaVersion(db, target);
    if (version === target) return done;
    if (version > 0) lock ??= lockOutDaemons?.(version);
    const copy = version > 0 && makesCopy ? copyPathBefore(db.file, target) : null;
    if (copy !== null) writeCopy(db.file, copy);
    for (const migration of migrations.slice(version)) db.execute(migration);
    if (version === 0) db.run(...newWorkspace(sqliteDialect, clock));
    db.execute(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${target}`);
    db.run('INSERT INTO schema_steps (version, rankd, at) VALUES (@target, @rankdVersion, @now)', {
      target,
      rankdVersion,
      now: clock.now(),
    });
    return { ...done, from: version, copy };
  };
  try {
    return db.write(migrateOnce);
  } finally {
    lock?.release();
  }
}

/** Copies the database, which the migration has locked. Replaces the copy left by a previous attempt. */
function writeCopy(file: string, copy: string): void {
  writeWhole({ to: copy, unfinished: `${copy}.unfinished`, mayReplace: true }, (unfinished) => {
    copyDatabase(file, unfinished);
    appendDigest(unfinished);
  });
}
