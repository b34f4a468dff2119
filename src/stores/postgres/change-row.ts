import type { HoldPart, NamedRole, RankChange } from '../../core/model.ts';
import { changeColumns as columns, selected } from '../columns.ts';
import { withoutNulls } from '../row.ts';
import type { Transaction } from './engine/database.ts';
import type { Nullable } from './key-row.ts';
import { wakeQueue } from './member-queue.ts';

const fields = Object.keys(columns) as Array<keyof RankChange>;

/** The columns of a `ChangeRow`. */
export const changeFields = `seq, node, ${selected(columns)}`;

export const selectChange = `SELECT ${changeFields} FROM rankd.rank_changes`;

export const insertChange = `
  INSERT INTO rankd.rank_changes (${Object.values(columns).join(', ')}, node)
  VALUES (${fields.map((field) => `@${field}`).join(', ')}, @node)`;

/** A change as it is selected, with its position in the order of arrival and the node that works on it. */
export type ChangeRow = Omit<Nullable<RankChange>, 'roles' | 'hold'> & {
  /** JSON. */
  roles: string | null;
  hold: string | null;
  seq: number;
  node: string | null;
};

export function toChange({ seq: _, node: _node, code, roles, hold, ...row }: ChangeRow): RankChange {
  return {
    ...withoutNulls(row),
    code,
    ...(roles !== null && { roles: JSON.parse(roles) as NamedRole[] }),
    ...(hold !== null && { hold: JSON.parse(hold) as HoldPart }),
  };
}

export function toBindings({ roles, hold, ...change }: RankChange): Record<string, unknown> {
  return { ...change, roles: roles && JSON.stringify(roles), hold: hold && JSON.stringify(hold) };
}

/**
 * Writes what differs between a change and what it has become: an index of a column that is not named is not written. One that nobody holds
 * any more has no node, and who waits for it looks again.
 */
export function updateChange(
  transaction: Transaction,
  before: RankChange,
  { after, isHeld }: { after: RankChange; isHeld: boolean },
): void {
  const [old, bindings] = [toBindings(before), toBindings(after)];
  const differing = fields.filter((field) => JSON.stringify(bindings[field]) !== JSON.stringify(old[field]));
  const assignments = differing.map((field) => `${columns[field]} = @${field}`);
  if (!isHeld) assignments.push('node = NULL');
  if (assignments.length === 0) return;
  transaction.run(
    `UPDATE rankd.rank_changes SET ${assignments.join(', ')} WHERE id = @oldId ${isHeld ? '' : `RETURNING (${wakeQueue})`}`,
    { ...bindings, oldId: before.id },
  );
}
