import { RankdError } from '../../base/errors.ts';
import { counted } from '../../base/text.ts';
import { databaseBackedUp } from '../../core/events.ts';
import type {
  Backup,
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

export interface DatabaseVerdict {
  checks: StoreCheck[];
  /** True if the audit was read and is not what was written. */
  isAuditBroken: boolean;
  /** The fix for the operator if another check has failed. */
  mend: string;
}

/** Reads the whole database and, if it can be read, the audit's chain with `readAudit`. */
export async function checkDatabase(
  operations: Pick<StoreOperations, 'check'>,
  readAudit: () => Promise<AuditVerdict>,
): Promise<DatabaseVerdict> {
  const { schema, newestSchema, checks, mend } = await operations.check();
  const isReadable = checks.every(({ name, ok }) => ok || name === 'schema');
  // The audit is read only on the newest schema, because opening the store would migrate an older one.
  if (!isReadable || schema !== newestSchema) return { checks, mend, isAuditBroken: false };
  const audit = auditCheck(await readAudit());
  return { checks: [...checks, audit], mend, isAuditBroken: !audit.ok };
}

function auditCheck({ rows, breaks: [first] }: AuditVerdict): StoreCheck {
  const detail =
    first === undefined
      ? `${counted(rows, 'event')}, each following the one before`
      : `broken: ${describeBreak(first)}`;
  return { name: 'audit', ok: first === undefined, detail };
}

/** Copies the database, while others use it, to a file or into a stream. Throws as `StoreOperations.backUp`. */
export function backUpDatabase(
  operations: Pick<StoreOperations, 'backUp' | 'streamBackup'>,
  target: BackupTarget | { send: (chunk: Uint8Array) => Promise<void> },
): Promise<Backup> {
  return 'send' in target ? operations.streamBackup(target.send) : operations.backUp(target);
}

/** Records a backup for `status` and metrics, unless the schema is an older one: opening the store would migrate it. */
export async function recordBackup(
  { schema, newestSchema, bytes }: Backup,
  { file, by }: { file: string | undefined; by: string },
  withStore: (work: (ports: Pick<Ports, 'store' | 'clock'>) => Promise<void>) => Promise<void>,
): Promise<void> {
  if (schema !== newestSchema) return;
  await withStore(({ store, clock }) => store.appendAudit(databaseBackedUp({ file, bytes }, { by, at: clock.now() })));
}

interface RestoreSteps {
  /** Is asked once the backup is known to be sound. Throws if the operator says no. */
  confirm: () => Promise<void>;
  /** Runs a step that takes a while, and shows what it is. */
  show: <T>(what: string, step: () => Promise<T>) => Promise<T>;
}

/**
 * Puts a backup in the place of the database. Throws `conflict` if a daemon runs, before anything is asked or changed. A dry run only
 * checks the backup, beside a running daemon too.
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

/** Brings the database to the newest schema, also while daemons run: the operator asks for it by name. A dry run only tries it. `advise`: as `StoreOperations.migrate`. */
export async function migrateDatabase(
  operations: Pick<StoreOperations, 'migrate' | 'tryMigration'>,
  { dryRun, advise }: { dryRun: boolean; advise: (advice: string) => void },
): Promise<Migration> {
  return dryRun ? operations.tryMigration() : operations.migrate(advise);
}

/** Copies all that is kept in one place to another that has nothing, while no daemon works on either. Throws as `CopyPlace`. */
export async function copyStore({ from, to }: { from: CopyPlace; to: CopyPlace }): Promise<CopiedContents> {
  await using _source = await from.keepDaemonsAway();
  await using _target = await to.keepDaemonsAway();
  return await from.read((contents) => to.fill(contents));
}

/**
 * Makes the server that answers the known one. `confirm` is asked if another one was known. Resolves with what was known before and what was
 * found; throws `usage` if the data is in a file.
 */
export async function acceptServer(
  operations: Pick<StoreOperations, 'server'>,
  by: string,
  confirm: (server: KnownServer) => Promise<void>,
): Promise<KnownServer> {
  const server = await operations.server();
  if (server === undefined) {
    throw new RankdError('usage', 'The data is in a file here; only a PostgreSQL server has to be accepted.', {
      hint: 'set store.url, or RANKD_STORE_URL, to the URL of the database',
    });
  }
  if (server.known === server.found) return server;
  if (server.known !== undefined) await confirm(server);
  await server.accept(by);
  return server;
}
