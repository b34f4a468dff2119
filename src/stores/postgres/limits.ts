import type { Clock, LimitStore, SharedLimit } from '../../ports/index.ts';
import type { Database } from './engine/database.ts';

/** Token buckets, one row each. A statement refills a row and takes from it at once, so no two nodes take the same token. */
export function limitStore(db: Database, clock: Pick<Clock, 'now'>): LimitStore {
  return {
    async takeShared([first, second, ...more]) {
      if (first === undefined) return [];
      if (more.length > 0) throw new TypeError('a request has two limits at most');
      const bindings = { now: clock.now(), ...bucket(first, 1), ...(second !== undefined && bucket(second, 2)) };
      const rows = await db.work<{ isAllowed: boolean; left: number }>(
        second === undefined ? takeOne : takeBoth,
        bindings,
      );
      return rows.map(({ isAllowed, left }) => ({ isAllowed, left }));
    },

    async spend(spent) {
      const rows = await db.work<{ name: string; left: number }>(spendSql, {
        now: clock.now(),
        names: spent.map(({ name }) => name),
        bursts: spent.map(({ burst }) => burst),
        perMs: spent.map(perMs),
        left: spent.map(({ burst, count }) => burst - count),
        agoMs: spent.map(({ agoMs }) => Math.round(agoMs)),
      });
      const left = new Map(rows.map((row) => [row.name, row.left]));
      return spent.map(({ name, burst }) => left.get(name) ?? burst);
    },

    async forgetFullLimits() {
      const isFull = 'tokens + (@now - at) * per_ms >= burst';
      await db.work(`DELETE FROM rankd.limit_counts WHERE at <= @now AND ${isFull}`, { now: clock.now() });
    },
  };
}

function bucket(limit: SharedLimit, place: 1 | 2) {
  return { [`name${place}`]: limit.name, [`burst${place}`]: limit.burst, [`perMs${place}`]: perMs(limit) };
}

function perMs({ perMinute }: SharedLimit): number {
  return perMinute / 60_000;
}

/** Nodes' clocks differ by little; a time that is far ahead was told by a clock that has jumped. */
const countedUntil = '(CASE WHEN kept.at > @now::bigint + 60000 THEN excluded.at ELSE kept.at END)';
const refilled = `least(excluded.burst, kept.tokens + greatest(0, excluded.at - ${countedUntil}) * excluded.per_ms)`;
const moved = `at = greatest(excluded.at, ${countedUntil}), burst = excluded.burst, per_ms = excluded.per_ms`;

function takes(place: 1 | 2, from: string): string {
  return `
    INSERT INTO rankd.limit_counts AS kept (name, tokens, at, burst, per_ms, was_allowed)
    SELECT @name${place}, @burst${place}::float8 - 1, @now::bigint, @burst${place}::float8, @perMs${place}::float8, true ${from}
    ON CONFLICT (name) DO UPDATE SET
      tokens = ${refilled} - (${refilled} >= 1)::int, was_allowed = ${refilled} >= 1, ${moved}
    RETURNING was_allowed AS "isAllowed", tokens AS "left"`;
}

const takeOne = takes(1, '');
const takeBoth = `
  WITH first AS (${takes(1, '')}), second AS (${takes(2, 'FROM first WHERE "isAllowed"')})
  SELECT 1 AS place, "isAllowed", "left" FROM first UNION ALL SELECT 2, "isAllowed", "left" FROM second ORDER BY place`;

/** In the order of their names, so that no two nodes wait for each other. */
const spendSql = `
  INSERT INTO rankd.limit_counts AS kept (name, tokens, at, burst, per_ms, was_allowed)
  SELECT name, tokens, @now::bigint - ago_ms, burst, per_ms, true
  FROM unnest(@names::text[], @left::float8[], @bursts::float8[], @perMs::float8[], @agoMs::bigint[])
    AS told (name, tokens, burst, per_ms, ago_ms)
  ORDER BY name
  ON CONFLICT (name) DO UPDATE SET
    tokens = greatest(${refilled} - (excluded.burst - excluded.tokens), - excluded.burst), ${moved}
  RETURNING name, least(burst, tokens + greatest(0, @now::bigint - at) * per_ms) AS "left"`;
