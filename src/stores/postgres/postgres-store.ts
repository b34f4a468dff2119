import { systemClock } from '../../base/clock.ts';
import { placeOf, type ServerAddress } from '../../base/net.ts';
import type { Clock, OpenOptions, Store } from '../../ports/index.ts';
import { auditStore } from './audit.ts';
import { budgetLedger } from './budget-ledger.ts';
import { changeQueries } from './change-queries.ts';
import { changeWrites } from './change-writes.ts';
import { declaredKeyStore } from './declared-keys.ts';
import { discordStore } from './discord.ts';
import { Database } from './engine/database.ts';
import { groupStore } from './groups.ts';
import { holdStore } from './holds.ts';
import { idempotencyStore } from './idempotency.ts';
import { VersionedKeys } from './key-cache.ts';
import { keyStore } from './keys.ts';
import { type ClusterMemory, KnownCluster } from './known-cluster.ts';
import { limitStore } from './limits.ts';
import { memberQueueStore } from './member-queue.ts';
import { type Beating, Nodes, nodeIn } from './nodes.ts';
import { personStore } from './people.ts';
import { retentionStore } from './retention.ts';
import { requireAlone } from './schema/alone.ts';
import { migrate } from './schema/migrate.ts';
import { newestSchema } from './schema/schema-version.ts';
import { ServerClock } from './server-clock.ts';
import { webhookStore } from './webhooks.ts';
import { whitelistStore } from './whitelist.ts';
import { workspaceStore } from './workspace.ts';

export interface PostgresStoreOptions extends OpenOptions {
  address: ServerAddress;
  /** The real one stands for the server's; tests have one of their own. */
  clock: Clock;
  /** The clock for this handle's lease: by default the time of this process, which no test moves. */
  beating?: Beating;
  /** Where a daemon notes the id of its node: the next one of the same directory takes its place at once. */
  nodeFile?: string | undefined;
  /** Where it is noted which cluster the address leads to. */
  clusters?: ClusterMemory | undefined;
}

/** Opens what rankd keeps in a database of PostgreSQL. Its schema is made if it is missing. Throws as `StoreEngine.openStore`. */
export async function openPostgresStore({
  address,
  clock: given,
  beating = systemClock,
  nodeFile,
  clusters,
  onNew,
  onMigrated,
}: PostgresStoreOptions): Promise<Store> {
  const server = given === systemClock ? new ServerClock(systemClock) : undefined;
  const clock = server ?? given;
  const cluster = new KnownCluster(address, clusters);
  const db = new Database(address, { onTime: (look) => server?.note(look), cluster });
  try {
    const version = await requireAlone(db, { own: beating, newest: newestSchema, predecessor: nodeIn(nodeFile) });
    const isDone = version < newestSchema && (await migrate(db, clock));
    cluster.remember();
    if (version === 0) onNew?.();
    else if (isDone) onMigrated?.({ database: placeOf(address), from: version, to: newestSchema, copy: null });
    return createPostgresStore(db, clock, new Nodes(db, { clock, own: beating, file: nodeFile }));
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
    ...workspaceStore(db),
    ...keyStore(db, clock),
    freshen: () => keys.freshen(),
    lookUpKey: (query) => keys.lookUpKey(query),
    ...declaredKeyStore(db, clock, nodes),
    ...whitelistStore(db),
    ...changeWrites(db, clock, nodes),
    ...changeQueries(db, nodes),
    ...queue,
    ...idempotencyStore(db, nodes),
    ...holdStore(db),
    ...groupStore(db),
    ...auditStore(db, clock),
    ...retentionStore(db),
    ...personStore(db),
    ...discordStore(db),
    ...webhookStore(db, nodes),
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
