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
import { appendEvents } from './audit.ts';
import type { Bindings, Database, Dialect, Reader, Transaction } from './database.ts';
import {
  holdColumns as columns,
  inStates,
  perEngine,
  type RowOf,
  selected,
  upserted,
  whereOf,
  withoutNulls,
} from './rows.ts';

export function holdStore(db: Database): HoldStore {
  const conditions = {
    group: 'group_title = @group',
    rankeeId: 'rankee_id = @rankeeId',
    states: db.sql.anyOf('state', '@states'),
  } as const satisfies Record<Exclude<keyof HoldFilter, 'limit'>, string>;
  return {
    findHold: (id) => findHold(db, id),

    listHolds: (filter) =>
      holdsWhere(db, `${whereOf(conditions, filter)} ORDER BY seq DESC LIMIT @limit`, { ...filter }),

    async dueHolds({ retryNow, ...query }) {
      const isDue = retryNow ? 'TRUE' : '(next_try_at IS NULL OR next_try_at <= @now)';
      const due = `group_title = @group AND ${inStates(restingStates)} AND ends_at <= @now AND ${isDue}`;
      return holdsWhere(db, `${due} ORDER BY ends_at LIMIT @limit`, query);
    },

    async updateHold(id, judge) {
      return db.write(async (transaction) => {
        const before = await findHold(transaction, id);
        if (before === undefined || !isResting(before)) return undefined;
        const { holds, events } = judge(before);
        upsertHolds(transaction, holds);
        await appendEvents(transaction, events);
        return findHold(transaction, id);
      });
    },
  };
}

/** Returns the member's holds that a change may affect. */
export async function holdsOf(db: Reader, change: RankChange): Promise<HoldsOfMember> {
  const { group, rankeeId, hold } = change;
  const [holds, own] = await Promise.all([
    holdsFrom(db, selectOfMember(db.sql), { rankeeId, group, endedBy: endingChange(change) }),
    hold && findHold(db, hold.id),
  ]);
  return classifyHolds(own === undefined ? holds : [...holds, own], change);
}

const selectOfMember = perEngine((sql) => {
  const isNeeded = `(${inStates(openStates)} OR return_change_id = @endedBy)`;
  return `${selectHold(sql)} WHERE rankee_id = @rankeeId AND group_title = @group AND ${isNeeded}`;
});

/**
 * Reads the holds that a change may affect. Needs only the change's id, so the caller can read the change at the same
 * time, then pass it to the returned function, which classifies the holds.
 */
export async function holdsOfChange(db: Reader, changeId: string): Promise<(change: RankChange) => HoldsOfMember> {
  const holds = await holdsFrom(db, selectOfChange(db.sql), { changeId });
  return (change) => classifyHolds(holds, change);
}

const selectOfChange = perEngine((sql) => {
  const ofChange = (columns: string) =>
    `(SELECT ${columns} FROM ${sql.schema}.rank_changes WHERE rank_changes.id = @changeId)`;
  return `${selectHold(sql)} WHERE (rankee_id, group_title) = ${ofChange('rankee_id, group_title')}
    AND (${inStates(openStates)} OR id = ${ofChange(sql.jsonField('hold', 'id'))}
      OR return_change_id IN (@changeId, ${ofChange(sql.jsonField('hold', 'recloses', 'by'))}))`;
});

function classifyHolds(holds: readonly Hold[], change: RankChange): HoldsOfMember {
  const { hold } = change;
  return {
    open: holds.find(isOpenHold),
    own: hold && holds.find(({ id }) => id === hold.id),
    ended: holds.find(({ returnChangeId }) => returnChangeId === endingChange(change)),
  };
}

/** Inserts or replaces holds. Callers must pass ended holds first, because a member can have only one open hold. */
export function upsertHolds(transaction: Transaction, holds: readonly Hold[]): void {
  for (const { rolesBefore, rolesDuring, ...hold } of holds)
    transaction.run(`INSERT INTO ${transaction.sql.schema}.holds ${putHold}`, {
      ...hold,
      rolesBefore: JSON.stringify(rolesBefore),
      rolesDuring: JSON.stringify(rolesDuring),
    });
}

const putHold = upserted(columns, 'id');

function selectHold({ schema }: Dialect): string {
  return `SELECT ${selected(columns)} FROM ${schema}.holds`;
}

export function holdsNaming(db: Reader, person: { userId: number; byPerson: readonly string[] }): Promise<Hold[]> {
  return holdsWhere(db, namesPerson(db.sql), person);
}

/**
 * Matches changes and holds whose member or ranker is `@userId`, or that were requested by one of the actors
 * `@byPerson`.
 */
export function namesPerson({ anyOf }: Dialect): string {
  return `(rankee_id = @userId OR ranker_id = @userId OR ${anyOf('done_by', '@byPerson')})`;
}

async function findHold(db: Reader, id: string): Promise<Hold | undefined> {
  return (await holdsWhere(db, 'id = @id', { id }))[0];
}

function holdsWhere(db: Reader, where: string, bindings: Bindings): Promise<Hold[]> {
  return holdsFrom(db, `${selectHold(db.sql)} WHERE ${where}`, bindings);
}

async function holdsFrom(db: Reader, sql: string, bindings: Bindings): Promise<Hold[]> {
  const rows = await db.all<RowOf<Hold>>(sql, bindings);
  return rows.map(({ rolesBefore, rolesDuring, ...row }) => ({
    ...{ ...withoutNulls(row), rolesBefore: JSON.parse(rolesBefore), rolesDuring: JSON.parse(rolesDuring) },
  }));
}
