import type { RankChange } from '../../core/model.ts';
import { changeColumns as columns } from '../columns.ts';
import { withoutNulls } from '../row.ts';
import type { Connection } from './engine/connection.ts';
import type { RowOf } from './engine/row.ts';

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
