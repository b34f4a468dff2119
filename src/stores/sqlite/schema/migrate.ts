import { writeWhole } from '../../../base/files/write-whole.ts';
import { version as rankdVersion } from '../../../base/version.ts';
import type { Clock } from '../../../ports/index.ts';
import type { Connection } from '../engine/connection.ts';
import { copyDatabase } from '../files/copy-database.ts';
import { createWorkspace } from '../workspace.ts';
import { migrations as released } from './migrations.ts';
import { applicationId, copyBefore, schemaVersion } from './schema-version.ts';

export interface MigrateOptions {
  migrations?: readonly string[];
  /** False for a database that is a copy itself. */
  keepsCopy?: boolean;
}

/**
 * Brings a database to the newest schema, an empty file included. An older one is copied first, to
 * `rankd.db.before-v<new version>`. Two processes can do this at once: the second finds it done.
 *
 * Throws `config_invalid` where the file is not rankd's and `schema_newer` where a later rankd wrote it; neither is
 * touched.
 */
export function migrate(
  db: Connection,
  clock: Pick<Clock, 'now'>,
  { migrations = released, keepsCopy = true }: MigrateOptions = {},
): void {
  const target = migrations.length;
  if (schemaVersion(db, target) === target) return;
  db.writeSync(() => {
    const version = schemaVersion(db, target);
    if (version === target) return;
    if (version > 0 && keepsCopy) keepCopy(db.file, copyBefore(db.file, target));
    for (const migration of migrations.slice(version)) db.execute(migration);
    if (version === 0) createWorkspace(db, clock);
    db.execute(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${target}`);
    db.run('INSERT INTO schema_steps (version, rankd, at) VALUES (@target, @rankdVersion, @now)', {
      target,
      rankdVersion,
      now: clock.now(),
    });
  });
}

/** The write lock is held, so nothing can change before the migration does. A copy of an earlier attempt is replaced. */
function keepCopy(file: string, copy: string): void {
  writeWhole({ to: copy, unfinished: `${copy}.unfinished`, mayReplace: true }, (unfinished) =>
    copyDatabase(file, unfinished),
  );
}
