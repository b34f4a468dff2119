import { systemClock } from '../../base/clock.ts';
import { placeOf, type ServerAddress } from '../../base/net.ts';
import type { Clock, OpenOptions, Store } from '../../ports/index.ts';
import { commonStore } from '../sql/store.ts';
import { declarationsOf } from './declarations.ts';
import { Database } from './engine/database.ts';
import { idempotencyStore } from './idempotency.ts';
import { VersionedKeys } from './key-cache.ts';
import { type ClusterMemory, KnownCluster } from './known-cluster.ts';
import { memberQueueStore } from './member-queue.ts';
import { type LeaseClock, Nodes, nodeIn, requireAlone } from './nodes.ts';
import { migrate, newestSchema } from './schema/migrate.ts';
import { ServerClock } from './server-clock.ts';
import { budgetLedger, limitStore } from './shared-counts.ts';

export interface PostgresStoreOptions extends OpenOptions {
  address: ServerAddress;
  /** Passing `systemClock` selects the server's clock; tests pass a fake clock. */
  clock: Clock;
  leaseClock?: LeaseClock;
  /**
   * The file that stores the node id of the directory's daemon. The next daemon deregisters that node without waiting
   * until it counts as dead.
   */
  nodeFile?: string | undefined;
  clusters?: ClusterMemory | undefined;
}

/**
 * Opens a PostgreSQL database, and creates or migrates rankd's schema if necessary. Throws the same errors as
 * `StoreEngine.openStore`.
 */
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
  const db = new Database(address, { onClockReading: (reading) => server?.note(reading), cluster });
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
  const keys = new VersionedKeys(db, () => clock.now());
  const ping = async () => {
    await db.get('SELECT 1 AS one FROM rankd.workspace');
  };
  return {
    ...commonStore(db, { clock, node: nodes, declarations: declarationsOf(nodes) }),
    freshen: () => keys.freshen(),
    lookUpKey: (query) => keys.lookUpKey(query),
    ...queue,
    ...idempotencyStore(db, nodes),
    nodes,
    limits: limitStore(db, clock),
    budgetLedger: (credential) => budgetLedger(db, clock, credential),
    schemaTooNew: () => nodes.schemaTooNew,
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
