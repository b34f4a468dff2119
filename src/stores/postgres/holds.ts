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
import { holdColumns as columns, selected, upsertInto } from '../columns.ts';
import { withoutNulls } from '../row.ts';
import { inStates, whereOf } from '../where.ts';
import { appendEvents } from './audit.ts';
import type { Database, Reader, Transaction } from './engine/database.ts';
import type { Bindings } from './engine/statement.ts';
import type { Nullable } from './key-row.ts';

const upsertHold = upsertInto('rankd.holds', columns, 'id');

const conditions = {
  group: 'group_title = @group',
  rankeeId: 'rankee_id = @rankeeId',
  states: 'state = ANY(@states)',
} as const satisfies Record<Exclude<keyof HoldFilter, 'limit'>, string>;

export function holdStore(db: Database): HoldStore {
  return {
    findHold: (id) => findHold(db, id),

    listHolds: (filter) =>
      holdsWhere(db, `${whereOf(conditions, filter)} ORDER BY seq DESC LIMIT @limit`, { ...filter }),

    async dueHolds({ retryNow, ...query }) {
      const isDue = retryNow ? 'true' : '(next_try_at IS NULL OR next_try_at <= @now)';
      const due = `group_title = @group AND ${inStates(restingStates)} AND ends_at <= @now AND ${isDue}`;
      return holdsWhere(db, `${due} ORDER BY ends_at LIMIT @limit`, query);
    },

    async updateHold(id, judge) {
      return db.write(async (transaction) => {
        const before = await findHold(transaction, id);
        if (before === undefined || !isResting(before)) return undefined;
        const { holds, events } = judge(before);
        keepHolds(transaction, holds);
        await appendEvents(transaction, events);
        return findHold(transaction, id);
      });
    },
  };
}

/** The holds that a change of this member may concern. Called in the transaction that stores the change. */
export async function holdsOf(db: Reader, change: RankChange): Promise<HoldsOfMember> {
  const { group, rankeeId, hold } = change;
  const named = { rankeeId, group, ownId: hold?.id ?? '', endedBy: endingChange(change) };
  return concerning(await holdsWhere(db, ofMember, named), change);
}

const ofMember = `
  (rankee_id = @rankeeId AND group_title = @group AND (${inStates(openStates)} OR return_change_id = @endedBy)) OR id = @ownId`;

/** The same for a change that is kept already, by its id: nothing has to be known of it before. */
export async function holdsOfChange(db: Reader, changeId: string): Promise<(change: RankChange) => HoldsOfMember> {
  const holds = await holdsWhere(db, ofChange, { changeId });
  return (change) => concerning(holds, change);
}

function concerning(holds: Hold[], change: RankChange): HoldsOfMember {
  const { hold } = change;
  return {
    open: holds.find(isOpenHold),
    own: hold && holds.find(({ id }) => id === hold.id),
    ended: holds.find(({ returnChangeId }) => returnChangeId === endingChange(change)),
  };
}

const ofChange = `
  (rankee_id, group_title) = (SELECT rankee_id, group_title FROM rankd.rank_changes WHERE rank_changes.id = @changeId)
  AND (${inStates(openStates)}
    OR id = (SELECT hold::json ->> 'id' FROM rankd.rank_changes WHERE rank_changes.id = @changeId)
    OR return_change_id IN (
      SELECT unnest(ARRAY[rank_changes.id, hold::json #>> '{recloses,by}']) FROM rankd.rank_changes WHERE rank_changes.id = @changeId))`;

/** Writes holds as they are now. Those that are over come first: a member has one that is open. */
export function keepHolds(transaction: Transaction, holds: readonly Hold[]): void {
  for (const hold of holds) transaction.run(upsertHold, { ...hold });
}

export function holdsNaming(db: Reader, person: { userId: number; byPerson: string[] }): Promise<Hold[]> {
  return holdsWhere(db, 'rankee_id = @userId OR ranker_id = @userId OR done_by = ANY(@byPerson)', person);
}

async function findHold(db: Reader, id: string): Promise<Hold | undefined> {
  return (await holdsWhere(db, 'id = @id', { id }))[0];
}

async function holdsWhere(db: Reader, where: string, bindings: Bindings): Promise<Hold[]> {
  const rows = await db.all<Nullable<Hold>>(`SELECT ${selected(columns)} FROM rankd.holds WHERE ${where}`, bindings);
  return rows.map(withoutNulls);
}
