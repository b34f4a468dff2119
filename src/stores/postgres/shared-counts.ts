import { newId } from '../../core/api-key.ts';
import type { AccountName, BudgetLedger, Clock, LimitStore, OpeningFacts, SharedLimit } from '../../ports/index.ts';
import type { Database } from './engine/database.ts';

/** The state that an account's next change is based on. */
interface Basis {
  /** The row's `set_by` when it was last read; absent if there was no row. */
  rowSetBy?: string;
  /** The row's version, or a higher one if the server has lost data. */
  version: number;
  /** The account as JSON; absent if the next change must open it from `facts`. */
  account?: string;
  facts: { known?: string; lastChangeAt?: number };
}

interface Row {
  version: number;
  account: string;
  setBy: string;
}

/**
 * Returns the ledger shared by all nodes with the same platform key. Each account is one row, updated by
 * compare-and-set: no lock is held across a round trip, so a stalled node never blocks another. The loser of a race
 * receives the newer account in the response, and retries.
 */
export function budgetLedger(db: Database, clock: Pick<Clock, 'now'>, credential: string): BudgetLedger {
  const bases = new Map<string, Basis>();
  const handle = newId('node');
  let tries = 0;

  /**
   * Changes the account unless it has changed in the database since it was last read. If it has, caches the new account
   * and resolves with `undefined`.
   */
  async function tryChange<Account extends object, Result>(
    { operation, open }: AccountName<Account>,
    change: (account: Account, now: number) => Result,
  ): Promise<{ result: Result } | undefined> {
    const row = { credential, operation };
    const basis = bases.get(operation) ?? (await readBasis(db, row));
    const now = clock.now();
    const account: Account = basis.account === undefined ? open(factsOf(basis.facts, now)) : JSON.parse(basis.account);
    const result = change(account, now);
    tries += 1;
    const next = { version: basis.version + 1, account: JSON.stringify(account), setBy: `${handle} ${tries}` };
    const [kept] = await db.work<Row>(compareAndSet, { ...row, ...next, rowSetBy: basis.rowSetBy });
    const isSet = kept?.setBy === next.setBy;
    bases.set(operation, basisAfter(isSet || basis.account === undefined ? undefined : basis, kept));
    return isSet ? { result } : undefined;
  }

  return {
    async change(name, change) {
      for (;;) {
        const done = await tryChange(name, change);
        if (done !== undefined) return done.result;
      }
    },
  };
}

/**
 * Reopening an account raises its version by this much. No other node can be that many versions ahead, so only one node
 * reopens the account.
 */
const versionsSkipped = 1_000_000;

/**
 * Returns the basis for the next change, given the row `kept` that a statement returned. If an account was known and
 * its row is missing or not newer, the server has lost data, possibly including other nodes' changes to the account.
 */
function basisAfter(known: Basis | undefined, kept: Row | undefined): Basis {
  const row = kept && { rowSetBy: kept.setBy };
  if (known?.account !== undefined && (kept === undefined || kept.version <= known.version))
    return { ...row, version: known.version + versionsSkipped, facts: { known: known.account } };
  if (kept === undefined) return { version: 0, facts: {} };
  return { ...row, version: kept.version, account: kept.account, facts: {} };
}

function factsOf<Account>({ known, lastChangeAt }: Basis['facts'], now: number): OpeningFacts<Account> {
  return {
    now,
    ...(known !== undefined && { known: JSON.parse(known) }),
    ...(lastChangeAt !== undefined && { lastChangeAt }),
  };
}

/**
 * Reads an account's basis. If the account has no row, no call has used it since the key's ledger was opened, so only
 * older calls may still count against the budget.
 */
async function readBasis(db: Database, row: { credential: string; operation: string }): Promise<Basis> {
  const [, [kept], [opened]] = await Promise.all([
    db.work(openLedger, { ...row, opening }),
    db.work<Row>(readSql, row),
    db.work<Pick<Row, 'account'>>(readSql, { ...row, operation: opening }),
  ]);
  const basis = basisAfter(undefined, kept);
  const facts: Basis['facts'] = JSON.parse(opened?.account ?? '{}');
  return kept === undefined ? { ...basis, facts } : basis;
}

/**
 * A pseudo-operation whose row stores the time of the last rank change requested before the key's ledger was opened.
 */
const opening = 'opening';

const openLedger = `
  INSERT INTO rankd.platform_budget (credential, operation, version, account, set_by)
  SELECT @credential, @opening, 1, json_strip_nulls(json_build_object('lastChangeAt', (SELECT max(requested_at) FROM rankd.rank_changes)))::text, ''
  WHERE NOT EXISTS (SELECT 1 FROM rankd.platform_budget WHERE credential = @credential AND operation = @opening)
  ON CONFLICT (credential, operation) DO NOTHING`;

const readSql = `
  SELECT version, account, set_by AS "setBy" FROM rankd.platform_budget
  WHERE credential = @credential AND operation = @operation`;

/**
 * Sets the row unless it has been set in the meantime. Returns the current row, or none if the row is gone. Commits
 * asynchronously: a crash loses less than a second of commits, and a node that remembers a newer version detects the
 * loss.
 */
const compareAndSet = `
  INSERT INTO rankd.platform_budget AS kept (credential, operation, version, account, set_by)
  SELECT @credential, @operation, @version, @account, @setBy
  WHERE set_config('synchronous_commit', 'off', true) = 'off' AND (@rowSetBy::text IS NULL OR EXISTS (
    SELECT 1 FROM rankd.platform_budget WHERE credential = @credential AND operation = @operation))
  ON CONFLICT (credential, operation) DO UPDATE SET
    version = CASE WHEN kept.set_by = @rowSetBy THEN excluded.version ELSE kept.version END,
    account = CASE WHEN kept.set_by = @rowSetBy THEN excluded.account ELSE kept.account END,
    set_by = CASE WHEN kept.set_by = @rowSetBy THEN excluded.set_by ELSE kept.set_by END
  RETURNING version, account, set_by AS "setBy"`;

/**
 * Stores one token bucket per row. A single statement refills the bucket and takes a token, so two nodes never take the
 * same token.
 */
export function limitStore(db: Database, clock: Pick<Clock, 'now'>): LimitStore {
  return {
    async takeShared([first, second, ...more]) {
      if (first === undefined) return [];
      if (more.length > 0) throw new TypeError('a request has at most two limits');
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

/** Ignores a stored time more than a minute in the future, because the clock that set it must have jumped. */
const countedUntil = '(CASE WHEN kept.at > @now::bigint + 60000 THEN excluded.at ELSE kept.at END)';
const refilled = `least(excluded.burst, kept.tokens + greatest(0, excluded.at - ${countedUntil}) * excluded.per_ms)`;
const moved = `at = greatest(excluded.at, ${countedUntil}), burst = excluded.burst, per_ms = excluded.per_ms`;

function takeSql(place: 1 | 2, from: string): string {
  return `
    INSERT INTO rankd.limit_counts AS kept (name, tokens, at, burst, per_ms, was_allowed)
    SELECT @name${place}, @burst${place}::float8 - 1, @now::bigint, @burst${place}::float8, @perMs${place}::float8, true ${from}
    ON CONFLICT (name) DO UPDATE SET
      tokens = ${refilled} - (${refilled} >= 1)::int, was_allowed = ${refilled} >= 1, ${moved}
    RETURNING was_allowed AS "isAllowed", tokens AS "left"`;
}

const takeOne = takeSql(1, '');
const takeBoth = `
  WITH first AS (${takeSql(1, '')}), second AS (${takeSql(2, 'FROM first WHERE "isAllowed"')})
  SELECT 1 AS place, "isAllowed", "left" FROM first UNION ALL SELECT 2, "isAllowed", "left" FROM second ORDER BY place`;

/** Locks the rows in name order, to prevent deadlocks. */
const spendSql = `
  INSERT INTO rankd.limit_counts AS kept (name, tokens, at, burst, per_ms, was_allowed)
  SELECT name, tokens, @now::bigint - ago_ms, burst, per_ms, true
  FROM unnest(@names::text[], @left::float8[], @bursts::float8[], @perMs::float8[], @agoMs::bigint[])
    AS spent (name, tokens, burst, per_ms, ago_ms)
  ORDER BY name
  ON CONFLICT (name) DO UPDATE SET
    tokens = greatest(${refilled} - (excluded.burst - excluded.tokens), - excluded.burst), ${moved}
  RETURNING name, least(burst, tokens + greatest(0, @now::bigint - at) * per_ms) AS "left"`;
