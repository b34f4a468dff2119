import { RankdError } from '../../base/errors.ts';
import { counted } from '../../base/text.ts';
import { databaseBackedUp } from '../../core/events.ts';
import type {
  Backup,
  BackupContents,
  BackupTarget,
  CopiedContents,
  CopyPlace,
  ExaminedBackup,
  KnownServer,
  Migration,
  Ports,
  Restored,
  RestoreRequest,
  StoreCheck,
  StoreOperations,
} from '../../ports/index.ts';
import { type AuditVerdict, describeBreak } from '../history/verify-audit.ts';

interface DatabaseVerdict {
  checks: StoreCheck[];
  /** True if the audit log could be read and its chain is broken. */
  isAuditBroken: boolean;
  /** The fix to show if a check other than the audit check failed. */
  fix: string;
}

/** Checks the whole database and, if rankd can read it without a migration, the audit log's chain with `readAudit`. */
export async function checkDatabase(
  operations: Pick<StoreOperations, 'check'>,
  readAudit: () => Promise<AuditVerdict>,
): Promise<DatabaseVerdict> {
  const { schema, newestSchema, checks, fix } = await operations.check();
  const isReadable = checks.every(({ name, ok }) => ok || name === 'schema');
  // Opening the store to read the audit log would migrate an older schema.
  if (!isReadable || schema !== newestSchema) return { checks, fix, isAuditBroken: false };
  const audit = auditCheck(await readAudit());
  return { checks: [...checks, audit], fix, isAuditBroken: !audit.ok };
}

function auditCheck({ rows, breaks: [first] }: AuditVerdict): StoreCheck {
  const detail =
    first === undefined
      ? `${counted(rows, 'event')}, each linked to the one before`
      : `broken: ${describeBreak(first)}`;
  return { name: 'audit', ok: first === undefined, detail };
}

/**
 * Copies the database to a file or a stream, even while it is in use. Throws the same errors as
 * `StoreOperations.backUp`.
 */
export function backUpDatabase(
  operations: Pick<StoreOperations, 'backUp' | 'streamBackup'>,
  target: BackupTarget | { send: (chunk: Uint8Array) => Promise<void> },
): Promise<Backup> {
  return 'send' in target ? operations.streamBackup(target.send) : operations.backUp(target);
}

/**
 * Records a backup in the audit log, from which `status` and the metrics read it. Skips a database with an older
 * schema, because opening the store would migrate it.
 */
export async function recordBackup(
  { schema, newestSchema, bytes }: Backup,
  { file, by }: { file: string | undefined; by: string },
  withStore: (work: (ports: Pick<Ports, 'store' | 'clock'>) => Promise<void>) => Promise<void>,
): Promise<void> {
  if (schema !== newestSchema) return;
  await withStore(({ store, clock }) => store.appendAudit(databaseBackedUp({ file, bytes }, { by, at: clock.now() })));
}

interface RestoreSteps {
  /** Asks for confirmation after the backup has been checked. Throws if the operator declines. */
  confirm: () => Promise<void>;
  /** Runs a slow step, and shows its name while it runs. */
  show: <T>(what: string, step: () => Promise<T>) => Promise<T>;
}

/**
 * Replaces the database with a backup. Throws `conflict`, before asking for confirmation, if a daemon is running. A dry
 * run only checks the backup, even while a daemon is running.
 */
export async function restoreBackup(
  operations: Pick<StoreOperations, 'lockDaemon' | 'examineBackup' | 'restore'>,
  { dryRun, ...request }: RestoreRequest & { dryRun: boolean },
  { confirm, show }: RestoreSteps,
): Promise<ExaminedBackup & Partial<Restored>> {
  const examine = () => show('checking the backup', () => operations.examineBackup(request.file));
  if (dryRun) return examine();
  await using _lock = await operations.lockDaemon();
  const contents = await examine();
  await confirm();
  return { ...contents, ...(await show('restoring', () => operations.restore(request))) };
}

/**
 * Migrates the database to the newest schema, even while daemons are running. A dry run only tests the migration.
 */
export async function migrateDatabase(
  operations: Pick<StoreOperations, 'migrate' | 'tryMigration'>,
  { dryRun }: { dryRun: boolean },
): Promise<Migration> {
  return dryRun ? operations.tryMigration() : operations.migrate();
}

/** Copies all data to an empty target. Prevents daemons from using the source or the target during the copy. */
export async function copyStore({ from, to }: { from: CopyPlace; to: CopyPlace }): Promise<CopiedContents> {
  await using _source = await from.lockOutDaemons();
  await using _target = await to.lockOutDaemons();
  return await from.read((contents) => to.fill(contents));
}

/**
 * Accepts the current PostgreSQL server as the known one. Calls `confirm` if a different server was known. Returns the
 * previously known server and the current one. Throws `usage` if the data is in a file.
 */
export async function acceptServer(
  operations: Pick<StoreOperations, 'server'>,
  by: string,
  confirm: (server: KnownServer) => Promise<void>,
): Promise<KnownServer> {
  const server = await operations.server();
  if (server === undefined) {
    throw new RankdError(
      'usage',
      'rankd stores its data in a file here; only a PostgreSQL server has to be accepted.',
      {
        hint: "set store.url, or RANKD_STORE_URL, to the database's URL",
      },
    );
  }
  if (server.known === server.found) return server;
  if (server.known !== undefined) await confirm(server);
  await server.accept(by);
  return server;
}

/** `file` is an absolute path. */
export function backupDocument({ file, bytes, schema, rows }: Backup & { file: string }) {
  return { file, bytes, schema, ...rows };
}

/**
 * Returns the JSON document for a restored backup or, in a dry run, for a checked one. `kept` is the path of the
 * previous database; null if there was none.
 */
export function restoreDocument(
  { schema, rows, kept }: BackupContents & Partial<Restored>,
  { file, dryRun }: { file: string; dryRun: boolean },
) {
  return { file, schema, ...rows, kept: kept ?? null, dryRun };
}

/**
 * `auditHead` is the newest event's hash, which is the same in the source and the target. `rows` maps each table to its
 * number of rows.
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

/** `known` is the previously known cluster, or null. `accepted` is false if the current cluster was already known. */
export function acceptDocument({ place, known, found }: KnownServer) {
  return { place, known: known ?? null, found, accepted: known !== found };
}
