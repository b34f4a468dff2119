import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { RankdError } from '../../base/errors.ts';
import { inWords } from '../../base/files.ts';
import { placeOf } from '../../base/net.ts';
import { newId } from '../../core/api-key.ts';
import type { ChainLink } from '../../core/audit.ts';
import type { NodeState, NodeStatus, SeenNode } from '../../core/nodes.ts';
import type { Clock, NodeCommand, NodeStore, ShownNode } from '../../ports/index.ts';
import { outgrown } from '../schema-errors.ts';
import type { OwnNode } from '../sql/database.ts';
import type { Database } from './engine/database.ts';
import { FailureDetector } from './failure-detector.ts';
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
import { newestSchema } from './schema/migrate.ts';

/** The interval at which a node shows that it is alive. */
export const beatEveryMs = 1_000;

/** The clock for a node's lease, and for the silence of others. */
export type LeaseClock = Pick<Clock, 'monotonic' | 'sleep'>;

/**
 * The node of this handle, from its first write that others must know of until it is closed. It increments a number in the database, and reads
 * those of the others: a node whose number stands still has ended. No two machines' clocks are ever compared: each measures its own time,
 * which no test moves and no user sets.
 */
export class Nodes implements NodeStore, OwnNode {
  readonly #db: Database;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #own: LeaseClock;
  readonly #file: string | undefined;
  /** Other nodes that were alive at the last beat. */
  #daemons = new Set<string>();
  /** The tasks of this node, by the id that it had when it took them. */
  readonly #tasks = new Map<string, string>();
  #shown: ShownNode | undefined;
  #mine: { id: string; leaseUntil: number } | undefined;
  /** The id that it had last. */
  #last: string | undefined;
  #joining: Promise<string> | undefined;
  #outgrown: RankdError | undefined;
  readonly #closing = new AbortController();
  #beating: Promise<void> | undefined;
  /** The commands that this node is carrying out. */
  readonly #underWay = new Set<number>();
  readonly #failures: FailureDetector;
  readonly #sweeps: Array<(node: string) => Promise<void>> = [];
  #sweeping: Promise<unknown> | undefined;

  constructor(
    db: Database,
    { clock, own, file }: { clock: Pick<Clock, 'now'>; own: LeaseClock; file?: string | undefined },
  ) {
    this.#db = db;
    this.#clock = clock;
    this.#own = own;
    this.#file = file;
    this.#failures = new FailureDetector(own);
  }

  /** The id of this handle's node, which begins with the first call, and again if others have ended it. Throws `store_unavailable` without a lease. */
  async id(): Promise<string> {
    if (this.#mine === undefined) {
      this.#joining ??= this.#join().finally(() => {
        this.#joining = undefined;
      });
      return this.#joining;
    }
    if (this.hasLease) return this.#mine.id;
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

  /** Calls `sweep` after each successful heartbeat that found rows of this node; `sweep` removes those that nothing in this process holds. */
  releaseOrphansWith(sweep: (node: string) => Promise<void>): void {
    this.#sweeps.push(sweep);
  }

  /** Throws if this is a daemon that has lost its lease, or whose store has a schema that it can't work with. */
  async requireLease(): Promise<void> {
    if (this.#outgrown !== undefined) {
      const { message, hint, retryAfterMs } = this.#outgrown;
      throw new RankdError('store_unavailable', message, { hint, retryAfterMs });
    }
    if (this.#shown !== undefined) await this.id();
  }

  /** Like `Store.outgrown`, by the last heartbeat. */
  get outgrown(): RankdError | undefined {
    return this.#outgrown;
  }

  /** The same; `undefined` if it has not begun. */
  get idIfBegun(): string | undefined {
    return this.#mine?.id;
  }

  /** True if it may work on the changes that it holds. */
  get hasLease(): boolean {
    return this.#mine !== undefined && this.#own.monotonic() < this.#mine.leaseUntil;
  }

  /** How much longer this handle's current node may work on the changes it holds: 0 once it has ended, even if another begins. */
  leaseLeft(): () => number {
    const mine = this.#mine;
    return () => (mine === undefined || mine !== this.#mine ? 0 : Math.max(0, mine.leaseUntil - this.#own.monotonic()));
  }

  /** Ends this node, so no other waits for its lease. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#joining?.catch(() => undefined);
    await this.#beating;
    await this.#sweeping;
    const mine = this.#mine;
    this.#mine = undefined;
    if (mine === undefined) return;
    await this.#db.work(leaveSql, { id: mine.id }).catch(() => undefined); // then others find out
  }

  async #join(): Promise<string> {
    const id = newId('node');
    const sentAt = this.#own.monotonic();
    const retryNow = this.#last !== undefined;
    await this.#db.work(joinSql, {
      id,
      at: this.#clock.now(),
      before: this.#last,
      predecessor: retryNow ? undefined : nodeIn(this.#file),
    });
    if (this.#file !== undefined) noteNode(this.#file, id);
    this.#mine = { id, leaseUntil: sentAt + leaseMs };
    this.#last = id;
    if (retryNow) this.#shown?.onNodesChanged();
    this.#beating ??= this.#keepBeating().finally(() => {
      this.#beating = undefined;
    });
    return id;
  }

  async #keepBeating(): Promise<void> {
    const { signal } = this.#closing;
    while ((this.#mine !== undefined || this.#shown !== undefined) && !signal.aborted) {
      await this.#own.sleep(beatEveryMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      if (this.#mine === undefined) await this.id().catch(() => undefined); // a daemon that others have ended joins again
      await this.#beat();
    }
  }

  async #beat(): Promise<void> {
    const mine = this.#mine;
    if (mine === undefined) return;
    const sentAt = this.#own.monotonic();
    try {
      const seen = this.#db.lastHead;
      const isCompared = this.#db.comparesHead();
      const { rows, sessionId } = await this.#db.beat<BeatRow>(beatSql, {
        ...{ id: mine.id, seenId: seen?.id, ...this.#shownStatus() },
      });
      if (rows[0] !== undefined) this.#db.onTime({ askedAt: sentAt, serverAt: rows[0].serverAt });
      this.#checkSchema(rows[0]?.livesWith ?? 0);
      await this.#compareHead(rows[0], seen);
      isCompared();
      const isMine = rows.some(({ id, isCounted }) => id === mine.id && isCounted);
      if (!isMine) {
        this.#mine = undefined; // others have ended it, and may take over its changes
        return;
      }
      mine.leaseUntil = sentAt + leaseMs;
      if (rows[0]?.holdsRows) this.#sweep(mine.id);
      for (const command of rows[0]?.commands ?? []) this.#carryOut(command);
      this.#noteDaemons(rows.filter(({ id, isDaemon }) => isDaemon && id !== mine.id));
      await this.#endStill(rows, sessionId, mine.id);
    } catch {
      // the lease runs out unless a later beat is answered
    }
  }

  /** Beats do not wait for it. If it fails, the next beat tries again. */
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
   * The head is older than the one this node has seen, or its number has another event: a standby that lacked the last commits
   * has become the primary. The budget already spent is no longer known either.
   */
  async #compareHead(row: BeatRow | undefined, seen: ChainLink | undefined): Promise<void> {
    if (row === undefined) return;
    const head = { id: row.headId, hash: row.headHash };
    const isLost = seen !== undefined && (head.id < seen.id || (row.seenHash !== null && row.seenHash !== seen.hash));
    if (isLost) await this.#db.work('DELETE FROM rankd.platform_budget'); // if that fails, the next beat finds the loss again
    if (isLost || (this.#db.lastHead?.id ?? 0) < head.id) this.#db.lastHead = head;
    if (isLost) this.#shown?.onLost?.({ fromId: Math.min(head.id + 1, seen.id), toId: seen.id });
  }

  #checkSchema(livesWith: number): void {
    if (livesWith <= newestSchema || this.#outgrown !== undefined) return;
    this.#outgrown = outgrown(placeOf(this.#db.address), { needed: livesWith, newest: newestSchema });
  }

  #carryOut({ seq, ...command }: StoredCommand): void {
    if (this.#shown === undefined || this.#underWay.has(seq)) return;
    this.#underWay.add(seq);
    const keep = 'UPDATE rankd.node_commands SET outcome = @outcome WHERE seq = @seq';
    this.#shown
      .carryOut(command)
      .then((outcome) => this.#db.work(keep, { seq, outcome: JSON.stringify(outcome ?? null) }))
      .catch(() => undefined) // the requester learns that there was no response
      .finally(() => this.#underWay.delete(seq));
  }

  #shownStatus(): { name?: string; status?: string } {
    return this.#shown === undefined ? {} : { name: this.#shown.name, status: JSON.stringify(this.#shown.status()) };
  }

  async #endStill(rows: readonly BeatRow[], sessionId: number, mine: string): Promise<void> {
    const others = rows.filter(({ id }) => id !== mine);
    for (const { id, beat } of this.#failures.observe(others, sessionId))
      await this.#db.work(endSql, { id, beat, mine });
  }
}

/** Without the note, on a full disk for example, the next daemon of the directory only has to wait until this node's lease expires. */
function noteNode(file: string, id: string): void {
  try {
    writeFileSync(file, `${id}\n`, { mode: 0o600 });
  } catch {
    return;
  }
}

/** The node of the daemon that worked in this directory before; its lock shows that it is gone. */
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
