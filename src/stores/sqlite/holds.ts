import {
  endingChange,
  type HoldsOfMember,
  isOpenHold,
  isResting,
  openStates,
  restingStates,
} from '../../core/holds.ts';
import type { Hold, RankChange } from '../../core/model.ts';
import type { HoldFilter, HoldStore } from '../../ports/index.ts';
import { absent, holdColumns as columns, selected, upsertInto } from '../columns.ts';
import { withoutNulls } from '../row.ts';
import { inStates, whereOf } from '../where.ts';
import { appendEvents } from './audit.ts';
import type { Connection } from './engine/connection.ts';
import type { RowOf } from './engine/row.ts';

const selectHold = `SELECT ${selected(columns)} FROM holds`;

const upsertHold = upsertInto('holds', columns, 'id');

const conditions = {
  group: 'group_title = @group',
  rankeeId: 'rankee_id = @rankeeId',
  states: 'instr(@states, json_quote(state)) > 0',
} as const satisfies Record<Exclude<keyof HoldFilter, 'limit'>, string>;

export function holdStore(db: Connection): HoldStore {
  return {
    async findHold(id) {
      return findHold(db, id);
    },

    async listHolds(filter) {
      const sql = `${selectHold} WHERE ${whereOf(conditions, filter)} ORDER BY seq DESC LIMIT @limit`;
      return db.all<RowOf<Hold>>(sql, { ...filter, states: JSON.stringify(filter.states) }).map(toHold);
    },

    async dueHolds({ retryNow, ...query }) {
      const isDue = retryNow ? 'TRUE' : '(next_try_at IS NULL OR next_try_at <= @now)';
      const sql = `${selectHold} WHERE group_title = @group AND ${inStates(restingStates)} AND ends_at <= @now AND ${isDue}
                   ORDER BY ends_at LIMIT @limit`;
      return db.all<RowOf<Hold>>(sql, query).map(toHold);
    },

    async updateHold(id, judge) {
      return db.write(() => {
        const before = findHold(db, id);
        if (before === undefined || !isResting(before)) return undefined;
        const { holds, events } = judge(before);
        keepHolds(db, holds);
        appendEvents(db, events);
        return findHold(db, id);
      });
    },
  };
}

/** The holds that a change of this member may concern. Called in the transaction that stores the change. */
export function holdsOf(db: Connection, change: RankChange): HoldsOfMember {
  const { group, rankeeId, hold } = change;
  const endedBy = endingChange(change);
  const where = `(${inStates(openStates)} OR return_change_id = @endedBy)`;
  const holds = db
    .all<RowOf<Hold>>(`${selectHold} WHERE rankee_id = @rankeeId AND group_title = @group AND ${where}`, {
      ...{ rankeeId, group, endedBy },
    })
    .map(toHold);
  const [open, ended] = [holds.find(isOpenHold), holds.find(({ returnChangeId }) => returnChangeId === endedBy)];
  return { open, ended, own: hold && findHold(db, hold.id) };
}

/** Writes holds as they are now. Those that are over come first: a member has one that is open. */
export function keepHolds(db: Connection, holds: readonly Hold[]): void {
  for (const hold of holds) db.run(upsertHold, toBindings(hold));
}

export function holdsNaming(db: Connection, person: { userId: number; byPerson: string }): Hold[] {
  const where = `rankee_id = @userId OR ranker_id = @userId OR done_by IN (SELECT value FROM json_each(@byPerson))`;
  return db.all<RowOf<Hold>>(`${selectHold} WHERE ${where}`, person).map(toHold);
}

function findHold(db: Connection, id: string): Hold | undefined {
  const row = db.get<RowOf<Hold>>(`${selectHold} WHERE id = @id`, { id });
  return row && toHold(row);
}

function toHold({ rolesBefore, rolesDuring, ...row }: RowOf<Hold>): Hold {
  return { ...withoutNulls(row), rolesBefore: JSON.parse(rolesBefore), rolesDuring: JSON.parse(rolesDuring) };
}

function toBindings(hold: Hold): Record<keyof Hold, string | number | null> {
  return {
    ...absent(columns),
    ...hold,
    rolesBefore: JSON.stringify(hold.rolesBefore),
    rolesDuring: JSON.stringify(hold.rolesDuring),
  };
}
