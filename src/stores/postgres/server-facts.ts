import { isOnThisMachine, isSocket, type ServerAddress } from '../../base/net.ts';
import type { Clock, ServerFacts } from '../../ports/index.ts';
import type { Database } from './engine/database.ts';

/** The server's facts. Ordinary users can see only the number of standbys. */
export async function serverFacts(
  db: Database,
  { address, clock }: { address: ServerAddress; clock: Clock },
): Promise<ServerFacts> {
  const isPooled = await db.isPooled();
  const askedAt = clock.now();
  const row = await db.get<Row>(factsSql);
  if (row === undefined) throw new TypeError('the server answered nothing');
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
  /** null: there is no schema yet. */
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
