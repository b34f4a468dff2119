import { RankdError } from '../../base/errors.ts';
import { isOnThisMachine, isSocket, placeOf, type ServerAddress } from '../../base/net.ts';
import { thisSystem } from '../../base/system.ts';
import { storeAccepted } from '../../core/events.ts';
import type {
  Clock,
  Migration,
  RowCounts,
  ServerFacts,
  StoreCheck,
  StoreOperations,
  StoreReport,
} from '../../ports/index.ts';
import { appendEvents } from '../sql/audit.ts';
import type { Reader } from '../sql/database.ts';
import { findNames, flawsCheck, noNames, noRows, rowCountsSql, rowsCheck } from '../sql/operations.ts';
import { type Database, onDatabase } from './engine/database.ts';
import { type ClusterMemory, KnownCluster, unreported } from './known-cluster.ts';
import { migrate, missingObjects, newestSchema, schemaVersion } from './schema/migrate.ts';

type DatabaseOperations = Omit<StoreOperations, 'lockDaemon' | 'isDaemonRunning' | 'backUp' | 'streamBackup'>;

interface ServerPlace {
  address: ServerAddress;
  clock: Clock;
  clusters: ClusterMemory;
}

export function postgresOperations({ address, clock, clusters }: ServerPlace): DatabaseOperations {
  const on = <T>(work: (db: Database) => Promise<T>) => onDatabase(address, work, new KnownCluster(address, clusters));
  const onExisting = <T>(work: (db: Database, schema: number) => Promise<T>) =>
    on(async (db) => {
      const schema = await schemaVersion(db, address);
      if (schema === 0) throw missing(address);
      return work(db, schema);
    });
  const migration = (from: number): Migration => {
    return { database: placeOf(address), from, to: Math.max(from, newestSchema), copy: null };
  };
  return {
    exists: () => on(async (db) => (await schemaVersion(db, address)) > 0),
    check: () => onExisting(async (db, schema) => ({ ...(await report(db, schema)), fix: fixOf(address) })),
    serverFacts: () => on((db) => serverFacts(db, { address, clock })),
    async server() {
      const cluster = new KnownCluster(address);
      const schema = await onDatabase(address, (db) => schemaVersion(db, address), cluster);
      const { found = unreported } = cluster;
      const [place, known] = [placeOf(address), clusters.find()];
      const accept = async (by: string) => {
        const accepted = storeAccepted(place, { known: known ?? null, found }, { by, at: clock.now() });
        const record = (db: Database) => db.write((transaction) => appendEvents(transaction, [accepted]));
        if (schema > 0) await onDatabase(address, record, cluster);
        clusters.record(found);
      };
      return { place, known, found, accept };
    },
    migrate: () =>
      onExisting(async (db, schema) => {
        await migrate(db, clock);
        return migration(schema);
      }),
    tryMigration: () =>
      onExisting(async (db, schema) => {
        await migrate(db, clock, { isTrial: true });
        return { ...migration(schema), note: `${migrationTried}\n${dumpFirstHint(address)}` };
      }),
    examineBackup: async (file) => Promise.reject(notHere(file)),
    restore: async ({ file }) => Promise.reject(notHere(file)),
    findNames: (query) => on((db) => findNames(db, query)).catch(() => noNames),
  };
}

const migrationTried = 'The migration succeeded and was rolled back; the database is unchanged.';

function dumpFirstHint(address: ServerAddress): string {
  return `rankd makes no backup of a PostgreSQL database before a migration. Dump it before you migrate it, so that you can restore it:\n${dumpLine(address)}`;
}

function fixOf(address: ServerAddress): string {
  return `if you have a dump, stop all daemons, rename the schema (ALTER SCHEMA rankd RENAME TO rankd_broken), then restore the dump: ${restoreLine(address)}`;
}

async function report(db: Database, schema: number): Promise<Omit<StoreReport, 'fix'>> {
  const [rows, missingOnes, headFlaws, server] = await Promise.all([
    db.get<RowCounts>(rowCountsSql(db.sql)),
    missingObjects(db, schema),
    headFlaw(db),
    db.get<{ version: string; bytes: number }>(
      `SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS bytes`,
    ),
  ]);
  const checks: StoreCheck[] = [
    flawsCheck('schema', missingOnes, `${schema}; this rankd supports schemas up to ${newestSchema}`),
    flawsCheck('audit', headFlaws, 'its head is its newest event'),
    rowsCheck(rows ?? noRows),
    { name: 'size', ok: true, detail: `${server?.bytes} bytes, on PostgreSQL ${server?.version}` },
  ];
  return { schema, newestSchema, checks };
}

/**
 * Compares the audit chain's head with the newest event. If the event is newer, rankd did not write it; if the head is
 * newer, events were lost.
 */
async function headFlaw(db: Reader): Promise<string[]> {
  const [flaw] = await db.all<{ headId: number | null; eventId: number }>(`
    SELECT head.last_id AS "headId", newest.id AS "eventId"
    FROM rankd.audit_anchor AS anchor LEFT JOIN rankd.audit_head AS head ON true
         CROSS JOIN LATERAL (SELECT coalesce((SELECT max(id) FROM rankd.audit_events), anchor.last_id) AS id) AS newest
    WHERE newest.id IS DISTINCT FROM head.last_id`);
  if (flaw === undefined) return [];
  return [
    flaw.headId === null
      ? 'it has no head'
      : `its head is event ${flaw.headId}, but its newest event is ${flaw.eventId}`,
  ];
}

function missing(address: ServerAddress): RankdError {
  return new RankdError('not_found', `There is no rankd data in the database ${placeOf(address)} yet.`, {
    hint: 'run rankd serve or any command that writes: it creates the schema',
  });
}

function notHere(file: string): RankdError {
  return new RankdError('usage', `${file} can't replace a PostgreSQL database that is in use.`, {
    hint: 'stop the daemons, then copy it into an empty database: rankd store copy --from FILE --to URL; for a dump, use pg_restore',
  });
}

/**
 * Reads the server's details. Ordinary users can see how many standbys there are, but not which of them are
 * synchronous, so all count as synchronous if synchronous_standby_names is set.
 */
export async function serverFacts(
  db: Database,
  { address, clock }: { address: ServerAddress; clock: Clock },
): Promise<ServerFacts> {
  const isPooled = await db.isPooled();
  const askedAt = clock.now();
  const row = await db.get<Row>(factsSql);
  if (row === undefined) throw new TypeError('the server returned no row');
  const { most, used, now, mayCreate, isOwner, ...facts } = row;
  return {
    ...facts,
    ...{ isPooled, connections: { most, used }, aheadMs: now - (askedAt + clock.now()) / 2 },
    ...{ user: address.user, database: address.database, isOnThisMachine: isOnThisMachine(address.host) },
    overridden: await db.overriddenSettings(),
    isProven: address.password !== undefined || address.tls !== false || isSocket(address.host),
    lacks: isOwner === false ? 'schema' : isOwner === null && !mayCreate ? 'database' : undefined,
  };
}

interface Row
  extends Pick<
    ServerFacts,
    | 'version'
    | 'isEncrypted'
    | 'isSynced'
    | 'idleSessionTimeoutMs'
    | 'writesFullPages'
    | 'isCommitSynced'
    | 'standbyCount'
    | 'synchronousCount'
  > {
  most: number;
  used: number;
  /** Epoch milliseconds. */
  now: number;
  mayCreate: boolean;
  /** `null` if there is no schema yet. */
  isOwner: boolean | null;
}

const factsSql = `
  SELECT current_setting('server_version') AS version,
         (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS "isEncrypted",
         current_setting('fsync') = 'on' AS "isSynced",
         current_setting('full_page_writes') = 'on' AS "writesFullPages",
         current_setting('synchronous_commit') NOT IN ('off', 'local') AS "isCommitSynced",
         (SELECT setting::bigint FROM pg_settings WHERE name = 'idle_session_timeout') AS "idleSessionTimeoutMs",
         (SELECT count(*) FROM pg_stat_replication) AS "standbyCount",
         (SELECT count(*) FROM pg_stat_replication WHERE current_setting('synchronous_standby_names') <> '') AS "synchronousCount",
         current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint AS most,
         (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
         (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
         has_database_privilege(current_database(), 'CREATE') AS "mayCreate",
         (SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = 'rankd') AS "isOwner"`;

/**
 * Returns the command that dumps rankd's data. It contains no password, because PostgreSQL's tools prompt for it.
 * `--schema=rankd` must be the last option, because `asTyped` would mistake `rankd --` for a rankd command.
 */
function dumpLine(address: ServerAddress): string {
  return `pg_dump --format=custom --no-unlogged-table-data --file=rankd.dump --schema=rankd ${urlOf(address)}`;
}

function restoreLine(address: ServerAddress): string {
  return `pg_restore --exit-on-error --single-transaction --dbname=${urlOf(address)} rankd.dump`;
}

function urlOf({ host, port, database, user }: ServerAddress): string {
  const place = host.includes(':') ? `[${host}]` : encodeURIComponent(host);
  return thisSystem.quote(`postgres://${encodeURIComponent(user)}@${place}:${port}/${encodeURIComponent(database)}`);
}
