import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { RankdError } from '../../base/errors.ts';
import { inWords } from '../../base/files.ts';
import { placeOf } from '../../base/net.ts';
import { newId } from '../../core/api-key.ts';
import type { ChainLink } from '../../core/audit.ts';
import type { NodeState, NodeStatus, SeenNode } from '../../core/nodes.ts';
import type { Clock, NodeCommand, NodeStore, ShownNode } from '../../ports/index.ts';
import { schemaTooNew, usedByOthers } from '../schema-errors.ts';
import type { OwnNode } from '../sql/database.ts';
import type { Database } from './engine/database.ts';
import { endAfterMs, FailureDetector } from './failure-detector.ts';
import {
  askSql,
  type BeatRow,
  beatSql,
  endSql,
  joinSql,
  leaseMs,
  leaveSql,
  listSql,
  type NodeRow,
  type StoredCommand,
  takeTaskSql,
} from './node-statements.ts';
import { newestSchema, schemaVersion } from './schema/migrate.ts';

const beatEveryMs = 1_000;

export type LeaseClock = Pick<Clock, 'monotonic' | 'sleep'>;

/**
 * This handle's node. It registers before its first write that other nodes must know about; a daemon's node also
 * registers at startup. It stays registered until the handle is closed or the other nodes declare it dead. Each
 * heartbeat increments the node's beat and reads the beats of the others: a node whose beat stops changing is dead.
 * Each node measures the elapsed time itself, so no machine's clock is compared with another's.
 */
export class Nodes implements NodeStore, OwnNode {
  readonly #db: Database;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #ownClock: LeaseClock;
  readonly #file: string | undefined;
  /** The other daemons that were alive at the last heartbeat. */
  #daemons = new Set<string>();
  /** The id that this node had when it took each task, keyed by task. */
  readonly #tasks = new Map<string, string>();
  #shown: ShownNode | undefined;
  #ownNode: { id: string; leaseUntil: number } | undefined;
  /** The last id of this handle's node, even if other nodes have deregistered it. */
  #last: string | undefined;
  #joining: Promise<string> | undefined;
  #schemaTooNew: RankdError | undefined;
  readonly #closing = new AbortController();
  #beating: Promise<void> | undefined;
  /** The `seq` of each command that this node is carrying out. */
  readonly #inProgress = new Set<number>();
  readonly #failures: FailureDetector;
  readonly #sweeps: Array<(node: string) => Promise<void>> = [];
  #sweeping: Promise<unknown> | undefined;

  constructor(
    db: Database,
    { clock, own, file }: { clock: Pick<Clock, 'now'>; own: LeaseClock; file?: string | undefined },
  ) {
    this.#db = db;
    this.#clock = clock;
    this.#ownClock = own;
    this.#file = file;
    this.#failures = new FailureDetector(own);
  }

  /**
   * Resolves with the id of this handle's node. Registers the node on the first call, and again if other nodes have
   * deregistered it. Throws `store_unavailable` if the node has lost its lease.
   */
  async id(): Promise<string> {
    if (this.#ownNode === undefined) {
      this.#joining ??= this.#join().finally(() => {
        this.#joining = undefined;
      });
      return this.#joining;
    }
    if (this.hasLease) return this.#ownNode.id;
    throw new RankdError(
      'store_unavailable',
      'This daemon has lost contact with its database, so it cannot change ranks.',
      {
        hint: 'check that the PostgreSQL server responds; the daemon continues as soon as it does',
        retryAfterMs: beatEveryMs,
      },
    );
  }

  async showNode(node: ShownNode): Promise<void> {
    this.#shown = node;
    await this.id();
    await this.#beat();
  }

  get isAlone(): boolean {
    return this.#daemons.size === 0;
  }

  async listNodes(): Promise<SeenNode[]> {
    const rows = await this.#db.all<NodeRow>(listSql, {});
    return rows.map(({ id, name, status, ...row }) => {
      const shown = JSON.parse(status) as NodeStatus;
      return { id, name, state: stateOf(row, shown), status: shown };
    });
  }

  async hasTask(task: string): Promise<boolean> {
    const node = await this.id();
    if (this.#tasks.get(task) !== node) {
      if ((await this.#db.work(takeTaskSql, { task, node })).length === 0) return false;
      this.#tasks.set(task, node);
    }
    return this.hasLease;
  }

  async askNode(nodeId: string, command: NodeCommand): Promise<string> {
    const [asked] = await this.#db.work<{ id: string }>(askSql, { nodeId, ...command });
    return asked?.id ?? '';
  }

  async outcomeOf(commandId: string): Promise<{ outcome: unknown } | undefined> {
    const query = 'SELECT outcome FROM rankd.node_commands WHERE seq = @seq AND outcome IS NOT NULL';
    const row = await this.#db.get<{ outcome: string }>(query, { seq: Number(commandId) });
    return row && { outcome: JSON.parse(row.outcome) };
  }

  /**
   * Registers a function that runs after each heartbeat that finds claims or queue positions of this node. The function
   * must remove those that no request holds.
   */
  releaseOrphansWith(sweep: (node: string) => Promise<void>): void {
    this.#sweeps.push(sweep);
  }

  /** Throws if this daemon has lost its lease, or if the database's schema is too new for it. */
  async requireLease(): Promise<void> {
    if (this.#schemaTooNew !== undefined) {
      const { message, hint, retryAfterMs } = this.#schemaTooNew;
      throw new RankdError('store_unavailable', message, { hint, retryAfterMs });
    }
    if (this.#shown !== undefined) await this.id();
  }

  get schemaTooNew(): RankdError | undefined {
    return this.#schemaTooNew;
  }

  get idIfBegun(): string | undefined {
    return this.#ownNode?.id;
  }

  get hasLease(): boolean {
    return this.#ownNode !== undefined && this.#ownClock.monotonic() < this.#ownNode.leaseUntil;
  }

  /**
   * Returns a function that reports the milliseconds left in the current node's lease: 0 once that node has ended, even
   * if this handle has registered a new one.
   */
  leaseLeft(): () => number {
    const mine = this.#ownNode;
    return () =>
      mine === undefined || mine !== this.#ownNode ? 0 : Math.max(0, mine.leaseUntil - this.#ownClock.monotonic());
  }

  /** Deregisters this node, so that no other node has to wait until it counts as dead. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#joining?.catch(() => undefined);
    await this.#beating;
    await this.#sweeping;
    const mine = this.#ownNode;
    this.#ownNode = undefined;
    if (mine === undefined) return;
    await this.#db.work(leaveSql, { id: mine.id }).catch(() => undefined); // if it fails, others deregister the node
  }

  async #join(): Promise<string> {
    const id = newId('node');
    const sentAt = this.#ownClock.monotonic();
    const isRejoining = this.#last !== undefined;
    await this.#db.work(joinSql, {
      id,
      at: this.#clock.now(),
      before: this.#last,
      predecessor: isRejoining ? undefined : nodeIn(this.#file),
    });
    if (this.#file !== undefined) noteNode(this.#file, id);
    this.#ownNode = { id, leaseUntil: sentAt + leaseMs };
    this.#last = id;
    if (isRejoining) this.#shown?.onNodesChanged();
    this.#beating ??= this.#sendHeartbeats().finally(() => {
      this.#beating = undefined;
    });
    return id;
  }

  async #sendHeartbeats(): Promise<void> {
    const { signal } = this.#closing;
    while ((this.#ownNode !== undefined || this.#shown !== undefined) && !signal.aborted) {
      await this.#ownClock.sleep(beatEveryMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      if (this.#ownNode === undefined) await this.id().catch(() => undefined); // re-registers if others ended the node
      await this.#beat();
    }
  }

  async #beat(): Promise<void> {
    const mine = this.#ownNode;
    if (mine === undefined) return;
    const sentAt = this.#ownClock.monotonic();
    try {
      const seen = this.#db.lastHead;
      const finishComparison = this.#db.beginHeadComparison();
      const { rows, sessionId } = await this.#db.beat<BeatRow>(beatSql, {
        ...{ id: mine.id, seenId: seen?.id, ...this.#shownStatus() },
      });
      if (rows[0] !== undefined) this.#db.onClockReading({ askedAt: sentAt, serverAt: rows[0].serverAt });
      this.#checkSchema(rows[0]?.livesWith ?? 0);
      await this.#compareHead(rows[0], seen);
      finishComparison();
      const isMine = rows.some(({ id, isCounted }) => id === mine.id && isCounted);
      if (!isMine) {
        this.#ownNode = undefined; // others have deregistered the node and may take over its changes
        return;
      }
      mine.leaseUntil = sentAt + leaseMs;
      if (rows[0]?.holdsRows) this.#sweep(mine.id);
      for (const command of rows[0]?.commands ?? []) this.#carryOut(command);
      this.#noteDaemons(rows.filter(({ id, isDaemon }) => isDaemon && id !== mine.id));
      await this.#endDead(rows, sessionId, mine.id);
    } catch {
      // the lease expires unless a later heartbeat succeeds
    }
  }

  /** Runs the sweeps without delaying heartbeats. The next heartbeat retries those that failed. */
  #sweep(node: string): void {
    this.#sweeping ??= Promise.allSettled(this.#sweeps.map((sweep) => sweep(node))).finally(() => {
      this.#sweeping = undefined;
    });
  }

  #noteDaemons(daemons: readonly BeatRow[]): void {
    const before = this.#daemons;
    this.#daemons = new Set(daemons.map(({ id }) => id));
    if ([...before].some((id) => !this.#daemons.has(id))) this.#shown?.onNodesChanged();
  }

  /**
   * Compares the server's head with the newest event that this node has seen. If the head is older or that event
   * differs, a standby without the latest commits has become the primary, and the shared budget can't be trusted
   * either.
   */
  async #compareHead(row: BeatRow | undefined, seen: ChainLink | undefined): Promise<void> {
    if (row === undefined) return;
    const head = { id: row.headId, hash: row.headHash };
    const isLost = seen !== undefined && (head.id < seen.id || (row.seenHash !== null && row.seenHash !== seen.hash));
    if (isLost) await this.#db.work('DELETE FROM rankd.platform_budget'); // the next heartbeat retries a failure
    if (isLost || (this.#db.lastHead?.id ?? 0) < head.id) this.#db.lastHead = head;
    if (isLost) this.#shown?.onLost?.({ fromId: Math.min(head.id + 1, seen.id), toId: seen.id });
  }

  #checkSchema(livesWith: number): void {
    if (livesWith <= newestSchema || this.#schemaTooNew !== undefined) return;
    this.#schemaTooNew = schemaTooNew(placeOf(this.#db.address), { needed: livesWith, newest: newestSchema });
  }

  #carryOut({ seq, ...command }: StoredCommand): void {
    if (this.#shown === undefined || this.#inProgress.has(seq)) return;
    this.#inProgress.add(seq);
    const storeOutcome = 'UPDATE rankd.node_commands SET outcome = @outcome WHERE seq = @seq';
    this.#shown
      .carryOut(command)
      .then((outcome) => this.#db.work(storeOutcome, { seq, outcome: JSON.stringify(outcome ?? null) }))
      .catch(() => undefined) // the requester times out
      .finally(() => this.#inProgress.delete(seq));
  }

  #shownStatus(): { name?: string; status?: string } {
    return this.#shown === undefined ? {} : { name: this.#shown.name, status: JSON.stringify(this.#shown.status()) };
  }

  async #endDead(rows: readonly BeatRow[], sessionId: number, mine: string): Promise<void> {
    const others = rows.filter(({ id }) => id !== mine);
    for (const { id, beat } of this.#failures.observe(others, sessionId))
      await this.#db.work(endSql, { id, beat, mine });
  }
}

/**
 * Records the node's id for the next daemon of this directory. A failure is harmless: that daemon then waits until this
 * node counts as dead.
 */
function noteNode(file: string, id: string): void {
  try {
    writeFileSync(file, `${id}\n`, { mode: 0o600 });
  } catch {
    return;
  }
}

/**
 * Returns the node id of the directory's previous daemon, which can't be running, because the caller holds the
 * directory's lock.
 */
export function nodeIn(file: string | undefined): string | undefined {
  if (file === undefined || !existsSync(file)) return undefined;
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw inWords(error, file);
  }
}

function stateOf({ isEnded, isSilent }: Pick<NodeRow, 'isEnded' | 'isSilent'>, { isDraining }: NodeStatus): NodeState {
  if (isEnded) return 'ended';
  if (isSilent) return 'no lease';
  return isDraining ? 'draining' : 'serving';
}

/**
 * Resolves with the database's schema version. Throws `conflict` if it is older than `newest` and another node is using
 * the database, because a migration could stop that node. A node counts as gone once its beat has not changed for
 * `endAfterMs`; `predecessor` is known to be gone.
 */
export async function requireAlone(
  db: Database,
  { own, newest, predecessor = '' }: { own: LeaseClock; newest: number; predecessor?: string | undefined },
): Promise<number> {
  const version = await schemaVersion(db, db.address);
  if (version === 0 || version >= newest) return version;
  const first = await aliveNodes(db, predecessor);
  const since = own.monotonic();
  while (first.size > 0 && own.monotonic() - since <= endAfterMs) {
    await own.sleep(beatEveryMs);
    const now = await aliveNodes(db, predecessor);
    const isAlive = [...now].some(([id, beat]) => first.has(id) && first.get(id) !== beat);
    if (isAlive) throw usedByOthers(placeOf(db.address), { version, newest });
    for (const id of first.keys()) if (!now.has(id)) first.delete(id);
  }
  return version;
}

async function aliveNodes(db: Database, predecessor: string): Promise<Map<string, number>> {
  const query = 'SELECT id, beat FROM rankd.nodes WHERE ended_by IS NULL AND id <> @predecessor';
  const rows = await db.all<{ id: string; beat: number }>(query, { predecessor });
  return new Map(rows.map(({ id, beat }) => [id, beat]));
}
