import type { Backup, BackupContents, Migration, Restored } from '../../ports/index.ts';
import type { DatabaseVerdict } from '../database/database.ts';

/** A backup that was made; `file` is its absolute path. */
export function backupDocument({ file, bytes, schema, rows }: Backup & { file: string }) {
  return { file, bytes, schema, ...rows };
}

/** A backup that was restored or, for a dry run, only checked. `kept` is where the database of before is; null if there was none. */
export function restoreDocument(
  { schema, rows, kept }: BackupContents & Partial<Restored>,
  { file, dryRun }: { file: string; dryRun: boolean },
) {
  return { file, schema, ...rows, kept: kept ?? null, dryRun };
}

export function databaseCheckDocument({ checks }: DatabaseVerdict) {
  return { ok: checks.every(({ ok }) => ok), checks };
}

export function migrationDocument({ database, from, to, copy }: Migration, dryRun: boolean) {
  return { database, from, to, copy, dryRun };
}
