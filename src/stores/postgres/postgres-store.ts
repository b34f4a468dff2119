import { systemClock } from '../../base/clock.ts';
import { placeOf, type ServerAddress } from '../../base/net.ts';
import type { Clock, OpenOptions, Store } from '../../ports/index.ts';
import { auditStore, retentionStore } from '../sql/audit.ts';
import { changeQueries } from '../sql/change-queries.ts';
import { changeSearch } from '../sql/change-search.ts';
import { changeWrites } from '../sql/change-writes.ts';
import { declaredKeyStore } from '../sql/declared-keys.ts';
import { groupStore } from '../sql/groups.ts';
import { holdStore } from '../sql/holds.ts';
import { keyStore } from '../sql/keys.ts';
import { loginLinkStore } from '../sql/login-links.ts';
import { discordStore, personStore } from '../sql/people.ts';
import { webhookStore } from '../sql/webhooks.ts';
import { whitelistStore, workspaceStore } from '../sql/workspace.ts';
import { declarationsOf } from './declarations.ts';
import { Database } from './engine/database.ts';
import { idempotencyStore } from './idempotency.ts';
import { VersionedKeys } from './key-cache.ts';
import { type ClusterMemory, KnownCluster } from './known-cluster.ts';
import { memberQueueStore } from './member-queue.ts';
import { type LeaseClock, Nodes, nodeIn } from './nodes.ts';
import { requireAlone } from './schema/alone.ts';
import { migrate, newestSchema } from './schema/migrate.ts';
import { ServerClock } from './server-clock.ts';
import { budgetLedger, limitStore } from './shared-counts.ts';

export interface PostgresStoreOptions extends OpenOptions {
  address: ServerAddress;
  /** By default the server's clock; tests pass their own. */
  clock: Clock;
  /** The clock for this handle's lease: by default the time of this process, which no test moves. */
  leaseClock?: LeaseClock;
  /** The file in which a daemon notes the id of its node: the next one of the same directory takes its place at once. */
  nodeFile?: string | undefined;
  /** Remembers the cluster that the address leads to. */
  clusters?: ClusterMemory | undefined;
}

/** Opens rankd's data in a PostgreSQL database. The schema is created if it is missing. Throws as `StoreEngine.openStore`. */
export async function openPostgresStore({
  address,
  clock: given,
  leaseClock = systemClock,
  nodeFile,
  clusters,
  onNew,
  onMigrated,
}: PostgresStoreOptions): Promise<Store> {
  const server = given === systemClock ? new ServerClock(systemClock) : undefined;
  const clock = server ?? given;
  const cluster = new KnownCluster(address, clusters);
  const db = new Database(address, { onTime: (reading) => server?.note(reading), cluster });
  try {
    const version = await requireAlone(db, { own: leaseClock, newest: newestSchema, predecessor: nodeIn(nodeFile) });
    const isDone = version < newestSchema && (await migrate(db, clock));
    cluster.remember();
    if (version === 0) onNew?.();
    else if (isDone) onMigrated?.({ database: placeOf(address), from: version, to: newestSchema, copy: null });
    return createPostgresStore(db, clock, new Nodes(db, { clock, own: leaseClock, file: nodeFile }));
  } catch (error) {
    await db.close();
    throw error;
  }
}

function createPostgresStore(db: Database, clock: Clock, nodes: Nodes): Store {
  const queue = memberQueueStore(db, nodes);
  const declarations = declarationsOf(nodes);
  const keys = new VersionedKeys(db, () => clock.now());
  const ping = async () => {
    await db.get('SELECT 1 AS one FROM rankd.workspace');
  };
  return {
    ...workspaceStore(db),
    ...keyStore(db, clock),
    freshen: () => keys.freshen(),
    lookUpKey: (query) => keys.lookUpKey(query),
    ...declaredKeyStore(db, clock, declarations),
    ...whitelistStore(db),
    ...changeWrites(db, clock, nodes),
    ...changeQueries(db, nodes),
    ...changeSearch(db),
    ...queue,
    ...idempotencyStore(db, nodes),
    ...holdStore(db),
    ...groupStore(db),
    ...auditStore(db, clock),
    ...retentionStore(db),
    ...personStore(db),
    ...discordStore(db),
    ...loginLinkStore(db),
    ...webhookStore(db, declarations),
    nodes,
    limits: limitStore(db, clock),
    budgetLedger: (credential) => budgetLedger(db, clock, credential),
    clock,
    outgrown: () => nodes.outgrown,
    ping,
    async pingWrites() {
      await nodes.requireLease();
      await ping();
      if (!db.hasFailedToWrite) return;
      await queue.leave(await queue.enqueue(0));
      db.hasFailedToWrite = false;
    },
    async close() {
      await nodes.close();
      await db.close();
    },
  };
}
