import type { Backup, BackupContents, CopiedContents, KnownServer, Migration, Restored } from '../../ports/index.ts';
import type { DatabaseVerdict } from '../database/database.ts';

/** A backup; `file` is its absolute path. */
export function backupDocument({ file, bytes, schema, rows }: Backup & { file: string }) {
  return { file, bytes, schema, ...rows };
}

/**
 * A backup that was restored or, for a dry run, only checked. `kept` is the path of the earlier database; null if there
 * was none.
 */
export function restoreDocument(
  { schema, rows, kept }: BackupContents & Partial<Restored>,
  { file, dryRun }: { file: string; dryRun: boolean },
) {
  return { file, schema, ...rows, kept: kept ?? null, dryRun };
}

/**
 * The copied data. `auditHead` is the hash of the newest event, the same in both places; `rows` has the count of each
 * table.
 */
export function copyDocument({ tables, head }: CopiedContents, { from, to }: { from: string; to: string }) {
  const count = (table: string) => tables.get(table) ?? 0;
  return {
    ...{ from, to },
    ...{ keys: count('keys'), whitelist: count('whitelist'), changes: count('rank_changes') },
    ...{ auditEvents: count('audit_events'), auditHead: head.hash },
    rows: Object.fromEntries(tables),
  };
}

export function databaseCheckDocument({ checks }: DatabaseVerdict) {
  return { ok: checks.every(({ ok }) => ok), checks };
}

export function migrationDocument({ database, from, to, copy }: Migration, dryRun: boolean) {
  return { database, from, to, copy, dryRun };
}

/**
 * `known` is the earlier cluster, null if none is recorded; `accepted` is false if it is the same as the one that was
 * found.
 */
export function acceptDocument({ place, known, found }: KnownServer) {
  return { place, known: known ?? null, found, accepted: known !== found };
}
