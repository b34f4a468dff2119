import type { NodeCommand } from '../../ports/index.ts';
import { isOpenChange } from '../sql/rows.ts';
import { serverTime } from './server-clock.ts';

/** The duration of a node's lease, counted from when the node sent its last answered heartbeat. */
export const leaseMs = 5_000;

/**
 * Registers a node. Deregisters the directory's previous daemon, and releases its queue positions and claims. Moves the
 * declarations of this daemon's previous node to the new one. Deletes ended nodes that joined over a day ago, unless
 * they still have open changes or are daemons that sent a heartbeat in the last day.
 */
export const joinSql = `
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
  ), declared_webhooks AS (
    UPDATE rankd.webhook_declarations SET node = @id WHERE node = @before
  )
  INSERT INTO rankd.nodes (id, joined_at) VALUES (@id, @at)`;

export interface NodeRow {
  id: string;
  name: string;
  status: string;
  isEnded: boolean;
  isSilent: boolean;
}

/**
 * Selects all live daemons, and those that other nodes have deregistered, if their last heartbeat is less than a day
 * old and no newer daemon has the same name.
 */
export const listSql = `
  SELECT id, name, status, ended_by IS NOT NULL AS "isEnded", ${serverTime} - beaten_at > ${leaseMs} AS "isSilent"
  FROM rankd.nodes
  WHERE name IS NOT NULL AND (ended_by IS NULL OR (
    ended_by NOT IN ('itself', 'its successor') AND ${serverTime} - beaten_at < 86400000
    AND NOT EXISTS (SELECT 1 FROM rankd.nodes AS later WHERE later.name = nodes.name AND later.seq > nodes.seq)))
  ORDER BY name COLLATE "C", seq`;

export interface BeatRow {
  id: string;
  beat: number;
  isCounted: boolean;
  isDaemon: boolean;
  /** The lowest schema version that rankd must support to use the database. */
  livesWith: number;
  /** The server's time, in epoch milliseconds. */
  serverAt: number;
  headId: number;
  headHash: string;
  /**
   * The stored hash of the newest event that this node has seen. `null` if it has seen none, or if the event is gone.
   */
  seenHash: string | null;
  /** True if this node has claims or queue positions. */
  holdsRows: boolean;
  /** This node's commands that have no outcome yet. */
  commands: StoredCommand[] | null;
}

export type StoredCommand = NodeCommand & { seq: number };

/**
 * Increments this node's beat, and returns all nodes that have not ended. Adds rows for unknown nodes that hold changes
 * or queue positions; because their beats never change, other nodes soon deregister them. Commits asynchronously,
 * because a lost heartbeat does no harm.
 */
export const beatSql = `
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
         EXISTS (SELECT 1 FROM rankd.idempotency_claims WHERE node = @id)
           OR EXISTS (SELECT 1 FROM rankd.member_queue WHERE node = @id) AS "holdsRows",
         (SELECT json_agg(json_build_object('seq', seq, 'does', does, 'by', asked_by) ORDER BY seq)
          FROM rankd.node_commands WHERE node = @id AND outcome IS NULL) AS commands
  FROM rankd.nodes WHERE ended_by IS NULL`;

/** Takes the task unless another live node has it. */
export const takeTaskSql = `
  INSERT INTO rankd.node_tasks AS kept (task, node) VALUES (@task, @node)
  ON CONFLICT (task) DO UPDATE SET node = excluded.node
    WHERE kept.node = excluded.node
       OR NOT EXISTS (SELECT 1 FROM rankd.nodes WHERE id = kept.node AND ended_by IS NULL)
  RETURNING task`;

export const askSql = `
  INSERT INTO rankd.node_commands (node, does, asked_by) VALUES (@nodeId, @does, @by) RETURNING seq::text AS id`;

export const endSql = `
  WITH ended AS (UPDATE rankd.nodes SET ended_by = @mine WHERE id = @id AND beat = @beat AND ended_by IS NULL RETURNING id),
       given_back AS (DELETE FROM rankd.idempotency_claims WHERE node IN (SELECT id FROM ended))
  DELETE FROM rankd.member_queue WHERE node IN (SELECT id FROM ended)`;

/**
 * Deregisters the node and releases its queue positions and claims, so that no other node has to wait until it counts
 * as dead.
 */
export const leaveSql = `
  WITH gone AS (DELETE FROM rankd.member_queue WHERE node = @id),
       given_back AS (DELETE FROM rankd.idempotency_claims WHERE node = @id)
  UPDATE rankd.nodes SET ended_by = 'itself' WHERE id = @id AND ended_by IS NULL`;
