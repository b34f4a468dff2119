import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { RankdError } from '../../base/errors.ts';
import { newId } from '../../core/api-key.ts';
import type { ChainLink } from '../../core/audit.ts';
import type { NodeState, NodeStatus, SeenNode } from '../../core/nodes.ts';
import type { Clock, NodeCommand, NodeStore, ShownNode } from '../../ports/index.ts';
import { isOpenChange } from '../where.ts';
import type { Database } from './engine/database.ts';
import { newestSchema, outgrown } from './schema/schema-version.ts';
import { serverTime } from './server-clock.ts';

/** How often a node shows that it is alive; how long it may work after it sent the last beat that was answered; and how long others wait. */
export const beatEveryMs = 1_000;
export const leaseMs = 5_000;
export const endAfterMs = 6_000;
/** So many beats of its own must have been answered meanwhile: a server that stands still ends nobody. */
const beatsToSee = 3;

/** What a node counts its lease by, and the silence of others. */
export type Beating = Pick<Clock, 'monotonic' | 'sleep'>;

interface Seen {
  beat: number;
  /** When this beat was seen first, on `Clock.monotonic()`, and how many beats of this node were answered since. */
  since: number;
  answered: number;
}

/**
 * The node of this handle, from its first write that others must know of until it is closed. It counts up a number in the database, and
 * looks at those of the others: whose number stands still has ended. No two machines' clocks are ever compared: each counts its own
 * time, which no test moves and nobody sets.
 */
export class Nodes implements NodeStore {
  readonly #db: Database;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #own: Beating;
  readonly #file: string | undefined;
  /** Those of others that were alive at the last beat. */
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
  readonly #seen = new Map<string, Seen>();
  #seenBy = 0;

  constructor(
    db: Database,
    { clock, own, file }: { clock: Pick<Clock, 'now'>; own: Beating; file?: string | undefined },
  ) {
    this.#db = db;
    this.#clock = clock;
    this.#own = own;
    this.#file = file;
  }

  /** The id of this handle's node, which begins with the first call, and anew if others have ended it. Throws `store_unavailable` without a lease. */
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
      'This daemon has not reached its database for too long to change ranks.',
      {
        hint: 'see whether the PostgreSQL server answers; the daemon goes on by itself once it does',
        retryAfterMs: beatEveryMs,
      },
    );
  }

  async showNode(node: ShownNode): Promise<void> {
    this.#shown = node;
    await this.id();
    await this.#beat();
  }

  async listNodes(): Promise<SeenNode[]> {
    const rows = await this.#db.all<NodeRow>(listSql, {});
    return rows.map(({ id, name, status, ...row }) => {
      const told = JSON.parse(status) as NodeStatus;
      return { id, name, state: stateOf(row, told), status: told };
    });
  }

  async hasTask(task: string): Promise<boolean> {
    const node = await this.id();
    if (this.#tasks.get(task) !== node) {
      if ((await this.#db.work(takeTask, { task, node })).length === 0) return false;
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

  /** Throws if this is a daemon that has lost its lease, or whose store was changed beyond what it can live with. */
  async requireLease(): Promise<void> {
    if (this.#outgrown !== undefined) {
      const { message, hint, retryAfterMs } = this.#outgrown;
      throw new RankdError('store_unavailable', message, { hint, retryAfterMs });
    }
    if (this.#shown !== undefined) await this.id();
  }

  /** The same; `undefined` if it has not begun. */
  get idIfBegun(): string | undefined {
    return this.#mine?.id;
  }

  /** Whether it may work on what it holds. */
  get hasLease(): boolean {
    return this.#mine !== undefined && this.#own.monotonic() < this.#mine.leaseUntil;
  }

  /** How much longer the node that this handle is now may work on what it holds: nothing once it has ended, also if another begins. */
  leaseLeft(): () => number {
    const mine = this.#mine;
    return () => (mine === undefined || mine !== this.#mine ? 0 : Math.max(0, mine.leaseUntil - this.#own.monotonic()));
  }

  /** Ends this node: nobody has to wait for its lease. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#joining?.catch(() => undefined);
    await this.#beating;
    const mine = this.#mine;
    this.#mine = undefined;
    if (mine === undefined) return;
    const leave = `
      WITH gone AS (DELETE FROM rankd.member_queue WHERE node = @id),
           given_back AS (DELETE FROM rankd.idempotency_claims WHERE node = @id)
      UPDATE rankd.nodes SET ended_by = 'itself' WHERE id = @id AND ended_by IS NULL`;
    await this.#db.work(leave, { id: mine.id }).catch(() => undefined); // then others find out
  }

  async #join(): Promise<string> {
    const id = newId('node');
    const sentAt = this.#own.monotonic();
    const isAnew = this.#last !== undefined;
    await this.#db.work(join, {
      id,
      at: this.#clock.now(),
      before: this.#last,
      predecessor: isAnew ? undefined : nodeIn(this.#file),
    });
    if (this.#file !== undefined) writeFileSync(this.#file, `${id}\n`, { mode: 0o600 });
    this.#mine = { id, leaseUntil: sentAt + leaseMs };
    this.#last = id;
    if (isAnew) this.#shown?.onNodesChanged();
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
      if (this.#mine === undefined) await this.id().catch(() => undefined); // a daemon that others have ended joins anew
      await this.#beat();
    }
  }

  async #beat(): Promise<void> {
    const mine = this.#mine;
    if (mine === undefined) return;
    const sentAt = this.#own.monotonic();
    try {
      const seen = this.#db.lastHead;
      const { rows, sessionId } = await this.#db.beat<BeatRow>(beatSql, {
        ...{ id: mine.id, seenId: seen?.id, ...this.#told() },
      });
      if (rows[0] !== undefined) this.#db.onTime({ askedAt: sentAt, serverAt: rows[0].serverAt });
      this.#lookAtSchema(rows[0]?.livesWith ?? 0);
      await this.#lookAtHead(rows[0], seen);
      const isMine = rows.some(({ id, isCounted }) => id === mine.id && isCounted);
      if (!isMine) {
        this.#mine = undefined; // others have ended it; what it held is theirs
        return;
      }
      mine.leaseUntil = sentAt + leaseMs;
      for (const command of rows[0]?.commands ?? []) this.#carryOut(command);
      this.#lookAtDaemons(rows.filter(({ id, isDaemon }) => isDaemon && id !== mine.id));
      await this.#endStill(rows, sessionId, mine.id);
    } catch {
      // the lease runs out unless a later beat is answered
    }
  }

  #lookAtDaemons(daemons: readonly BeatRow[]): void {
    const before = this.#daemons;
    this.#daemons = new Set(daemons.map(({ id }) => id));
    if ([...before].some((id) => !this.#daemons.has(id))) this.#shown?.onNodesChanged();
  }

  /**
   * A head that is behind what this node has seen, or another event under its number: a standby that lacked the last commits has become the
   * primary. What was spent of the platform's budget is not known any more either.
   */
  async #lookAtHead(row: BeatRow | undefined, seen: ChainLink | undefined): Promise<void> {
    if (row === undefined) return;
    const head = { id: row.headId, hash: row.headHash };
    const isLost = seen !== undefined && (head.id < seen.id || (row.seenHash !== null && row.seenHash !== seen.hash));
    if (isLost || (this.#db.lastHead?.id ?? 0) < head.id) this.#db.lastHead = head;
    if (!isLost) return;
    await this.#db.work('DELETE FROM rankd.platform_budget');
    this.#shown?.onLost?.({ fromId: Math.min(head.id + 1, seen.id), toId: seen.id });
  }

  #lookAtSchema(livesWith: number): void {
    if (livesWith <= newestSchema || this.#outgrown !== undefined) return;
    this.#outgrown = outgrown(this.#db.address, livesWith);
    this.#shown?.onOutgrown(this.#outgrown);
  }

  #carryOut({ seq, ...command }: KeptCommand): void {
    if (this.#shown === undefined || this.#underWay.has(seq)) return;
    this.#underWay.add(seq);
    const keep = 'UPDATE rankd.node_commands SET outcome = @outcome WHERE seq = @seq';
    this.#shown
      .carryOut(command)
      .then((outcome) => this.#db.work(keep, { seq, outcome: JSON.stringify(outcome ?? null) }))
      .catch(() => undefined) // who asked is told that there was no answer
      .finally(() => this.#underWay.delete(seq));
  }

  #told(): { name?: string; status?: string } {
    return this.#shown === undefined ? {} : { name: this.#shown.name, status: JSON.stringify(this.#shown.status()) };
  }

  /** Ends the nodes whose numbers stood still for too long, as seen on one connection. */
  async #endStill(rows: readonly BeatRow[], sessionId: number, mine: string): Promise<void> {
    if (sessionId !== this.#seenBy) this.#seen.clear();
    this.#seenBy = sessionId;
    const now = this.#own.monotonic();
    const others = rows.filter(({ id }) => id !== mine);
    for (const id of this.#seen.keys()) if (!others.some((other) => other.id === id)) this.#seen.delete(id);
    for (const { id, beat } of others) {
      const seen = this.#seen.get(id);
      if (seen?.beat !== beat) this.#seen.set(id, { beat, since: now, answered: 0 });
      else {
        seen.answered += 1;
        if (now - seen.since >= endAfterMs && seen.answered >= beatsToSee) await this.#db.work(end, { id, beat, mine });
      }
    }
  }
}

/**
 * The node that the daemon of this directory had before ends, and what this one declared as another node goes on. Nodes that ended and
 * joined more than a day ago go, unless an open change names them, or it is not a day since they were heard of as daemons.
 */
const join = `
  WITH forgotten AS (
    DELETE FROM rankd.nodes
    WHERE ended_by IS NOT NULL AND joined_at < @at::bigint - 86400000
      AND (name IS NULL OR beaten_at < ${serverTime} - 86400000)
      AND NOT EXISTS (SELECT 1 FROM rankd.rank_changes WHERE ${isOpenChange} AND rank_changes.node = nodes.id)
  ), succeeded AS (
    UPDATE rankd.nodes SET ended_by = 'its successor' WHERE id = @predecessor AND ended_by IS NULL
  ), left_queue AS (
    DELETE FROM rankd.member_queue WHERE node = @predecessor
  ), given_back AS (
    DELETE FROM rankd.idempotency_claims WHERE node = @predecessor
  ), declared AS (
    UPDATE rankd.declarations SET node = @id WHERE node = @before
  )
  INSERT INTO rankd.nodes (id, joined_at) VALUES (@id, @at)`;

/** The node of the daemon that worked in this directory before; its lock shows that that one is gone. */
export function nodeIn(file: string | undefined): string | undefined {
  return file === undefined || !existsSync(file) ? undefined : readFileSync(file, 'utf8').trim();
}

/** In SQL: whether the node that an expression names has ended. It counts as alive until its row says so. */
export function hasEnded(node: string): string {
  return `EXISTS (SELECT 1 FROM rankd.nodes WHERE nodes.id = ${node} AND ended_by IS NOT NULL)`;
}

interface NodeRow {
  id: string;
  name: string;
  status: string;
  isEnded: boolean;
  isSilent: boolean;
}

function stateOf({ isEnded, isSilent }: Pick<NodeRow, 'isEnded' | 'isSilent'>, { isDraining }: NodeStatus): NodeState {
  if (isEnded) return 'ended';
  if (isSilent) return 'no lease';
  return isDraining ? 'draining' : 'serving';
}

/** One that left, and one that was started again under its name, are no news. */
const listSql = `
  SELECT id, name, status, ended_by IS NOT NULL AS "isEnded", ${serverTime} - beaten_at > ${leaseMs} AS "isSilent"
  FROM rankd.nodes
  WHERE name IS NOT NULL AND (ended_by IS NULL OR (
    ended_by NOT IN ('itself', 'its successor') AND ${serverTime} - beaten_at < 86400000
    AND NOT EXISTS (SELECT 1 FROM rankd.nodes AS later WHERE later.name = nodes.name AND later.seq > nodes.seq)))
  ORDER BY name COLLATE "C", seq`;

interface BeatRow {
  id: string;
  beat: number;
  isCounted: boolean;
  isDaemon: boolean;
  /** The oldest schema whose rankd can live with the one that the database has. */
  livesWith: number;
  /** The server's time. */
  serverAt: number;
  /** The audit's newest event, and the one that has the number of the newest that this node has seen, if it is kept. */
  headId: number;
  headHash: string;
  seenHash: string | null;
  /** What this node was asked for and has not done yet. */
  commands: KeptCommand[] | null;
}

type KeptCommand = NodeCommand & { seq: number };

/**
 * Counts this node's number up, and tells those of all that have not ended, as they were before. Whoever holds something and has no row gets
 * one, which stands still. It is not synced: a beat that is lost does no harm.
 */
const beatSql = `
  WITH counted AS (
    UPDATE rankd.nodes SET beat = beat + 1, beaten_at = ${serverTime}, name = @name, status = @status
    WHERE set_config('synchronous_commit', 'off', true) = 'off' AND id = @id AND ended_by IS NULL RETURNING id
  ), lost AS (
    INSERT INTO rankd.nodes (id, joined_at)
    SELECT node, 0 FROM rankd.rank_changes WHERE ${isOpenChange} AND node IS NOT NULL
    UNION SELECT node, 0 FROM rankd.member_queue
    ON CONFLICT (id) DO NOTHING
  )
  SELECT id, beat, id IN (SELECT id FROM counted) AS "isCounted", name IS NOT NULL AS "isDaemon",
         (SELECT max(lives_with) FROM rankd.schema_steps) AS "livesWith",
         ${serverTime} AS "serverAt",
         (SELECT last_id FROM rankd.audit_head) AS "headId",
         (SELECT encode(hash, 'hex') FROM rankd.audit_head) AS "headHash",
         (SELECT encode(hash, 'hex') FROM rankd.audit_events WHERE id = @seenId::bigint) AS "seenHash",
         (SELECT json_agg(json_build_object('seq', seq, 'does', does, 'by', asked_by) ORDER BY seq)
          FROM rankd.node_commands WHERE node = @id AND outcome IS NULL) AS commands
  FROM rankd.nodes WHERE ended_by IS NULL`;

/** That of a node which has not ended stays. */
const takeTask = `
  INSERT INTO rankd.node_tasks AS kept (task, node) VALUES (@task, @node)
  ON CONFLICT (task) DO UPDATE SET node = excluded.node
    WHERE kept.node = excluded.node
       OR NOT EXISTS (SELECT 1 FROM rankd.nodes WHERE id = kept.node AND ended_by IS NULL)
  RETURNING task`;

const askSql = `
  INSERT INTO rankd.node_commands (node, does, asked_by) VALUES (@nodeId, @does, @by) RETURNING seq::text AS id`;

const end = `
  WITH ended AS (UPDATE rankd.nodes SET ended_by = @mine WHERE id = @id AND beat = @beat AND ended_by IS NULL RETURNING id),
       given_back AS (DELETE FROM rankd.idempotency_claims WHERE node IN (SELECT id FROM ended))
  DELETE FROM rankd.member_queue WHERE node IN (SELECT id FROM ended)`;
