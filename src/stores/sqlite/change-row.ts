import type { RankChange } from '../../core/model.ts';
import type { Connection } from './engine/connection.ts';
import { type RowOf, withoutNulls } from './engine/row.ts';

/** The column of every field of a change. */
const columns = {
  id: 'id',
  group: 'group_title',
  state: 'state',
  code: 'code',
  message: 'message',
  rankeeId: 'rankee_id',
  rankeeName: 'rankee_name',
  rankerId: 'ranker_id',
  rankerName: 'ranker_name',
  newRankId: 'new_rank_id',
  roleId: 'role_id',
  oldRoleId: 'old_role_id',
  rolesBefore: 'roles_before',
  rolesAfter: 'roles_after',
  roles: 'role_names',
  phase: 'phase',
  keyId: 'key_id',
  placeId: 'place_id',
  by: 'done_by',
  dryRun: 'dry_run',
  demotion: 'demotion',
  topRank: 'top_rank',
  privileged: 'privileged',
  command: 'command',
  oldRankName: 'old_rank_name',
  prefix: 'prefix',
  webhookHost: 'webhook_host',
  webhookHash: 'webhook_hash',
  reason: 'reason',
  requestedAt: 'requested_at',
  finishedAt: 'finished_at',
  undoOf: 'undo_of',
  undoId: 'undo_id',
  hold: 'hold',
  idempotencyKey: 'idempotency_key',
  fingerprint: 'fingerprint',
} as const satisfies Record<keyof RankChange, string>;

const fields = Object.keys(columns) as Array<keyof RankChange>;

export const selectChange = `SELECT seq, node, ${fields.map((field) => `${columns[field]} AS "${field}"`).join(', ')} FROM rank_changes`;

export const insertChange = `
  INSERT INTO rank_changes (${Object.values(columns).join(', ')}, node)
  VALUES (${fields.map((field) => `@${field}`).join(', ')}, @node)`;

/** A change as it is selected, with its position in the order of arrival and the node that works on it. */
export type ChangeRow = RowOf<RankChange> & { seq: number; node: string | null };

export function toChange({
  seq: _,
  node: _node,
  code,
  rolesBefore,
  rolesAfter,
  roles,
  hold,
  dryRun,
  demotion,
  privileged,
  ...row
}: ChangeRow): RankChange {
  return {
    ...withoutNulls(row),
    code,
    rolesBefore: JSON.parse(rolesBefore),
    rolesAfter: JSON.parse(rolesAfter),
    ...(roles !== null && { roles: JSON.parse(roles) }),
    ...(hold !== null && { hold: JSON.parse(hold) }),
    dryRun: dryRun === 1,
    demotion: demotion === 1,
    privileged: privileged === 1,
  };
}

const absent = Object.fromEntries(fields.map((field) => [field, null])) as Record<keyof RankChange, null>;

export function toBindings(change: RankChange): Record<keyof RankChange, string | number | null> {
  return {
    ...absent,
    ...change,
    rolesBefore: JSON.stringify(change.rolesBefore),
    rolesAfter: JSON.stringify(change.rolesAfter),
    roles: change.roles === undefined ? null : JSON.stringify(change.roles),
    hold: change.hold === undefined ? null : JSON.stringify(change.hold),
    dryRun: Number(change.dryRun),
    demotion: Number(change.demotion),
    privileged: Number(change.privileged),
  };
}

/**
 * Writes what differs between a change and what it has become. The other columns are not named: SQLite would put their indexes
 * in order again, and each is a page that the commit waits for.
 */
export function updateChange(db: Connection, before: RankChange, after: RankChange): void {
  const [old, bindings] = [toBindings(before), toBindings(after)];
  const differing = fields.filter((field) => bindings[field] !== old[field]);
  if (differing.length === 0) return;
  const assignments = differing.map((field) => `${columns[field]} = @${field}`);
  db.run(`UPDATE rank_changes SET ${assignments.join(', ')} WHERE id = @id`, bindings);
}
