import type { RankChange } from '../../core/model.ts';
import type { Bindings, Dialect, Transaction } from './database.ts';
import { changeColumns as columns, inserted, perEngine, type RowOf, selected, withoutNulls } from './rows.ts';

const fields = Object.keys(columns) as Array<keyof RankChange>;

export const changeFields = `seq, node, ${selected(columns)}`;

export function selectChange({ schema }: Dialect): string {
  return `SELECT ${changeFields} FROM ${schema}.rank_changes`;
}

export function insertChange(transaction: Transaction, change: RankChange, node: string | null): void {
  transaction.run(insertSql(transaction.sql), toBindings(change, { node }));
}

const insertSql = perEngine(
  ({ schema }) => `INSERT INTO ${schema}.rank_changes ${inserted({ ...columns, node: 'node' })}`,
);

/** A change's row, with its number in order of insertion and the node that holds it. */
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
    dryRun: Boolean(dryRun),
    demotion: Boolean(demotion),
    privileged: Boolean(privileged),
  };
}

function toBindings(change: RankChange, more?: Bindings): Bindings {
  const { rolesBefore, rolesAfter, roles, hold } = change;
  return {
    ...change,
    rolesBefore: JSON.stringify(rolesBefore),
    rolesAfter: JSON.stringify(rolesAfter),
    roles: roles && JSON.stringify(roles),
    hold: hold && JSON.stringify(hold),
    ...more,
  };
}

/**
 * Writes only the columns that differ, so that the indexes on other columns need no update. Clears the holder unless
 * `isHeld`.
 */
export function updateChange(
  transaction: Transaction,
  before: RankChange,
  { after, isHeld }: { after: RankChange; isHeld: boolean },
): void {
  const { schema } = transaction.sql;
  const [old, bindings] = [toBindings(before), toBindings(after)];
  const differing = fields.filter((field) => bindings[field] !== old[field]);
  const assignments = differing.map((field) => `${columns[field]} = @${field}`);
  if (!isHeld) assignments.push('node = NULL');
  if (assignments.length === 0) return;
  transaction.run(`UPDATE ${schema}.rank_changes SET ${assignments.join(', ')} WHERE id = @id`, bindings);
}
