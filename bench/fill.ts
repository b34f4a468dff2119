import { closeSync, fsyncSync, openSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { mintKey } from '../src/core/api-key.ts';
import { place, type Rankd } from './daemon.ts';

export interface Size {
  keys: number;
  changes: number;
}

/** A nearly empty database. It needs ten keys, because `fill` returns ten secrets. */
export const small: Size = { keys: 10, changes: 10 };

/** The time between two changes. At this rate, five million changes span a month. */
const everyMs = 500;

/** `addKeys` returns the secrets of this many keys. The other keys have random hashes. */
const goodSecrets = 10;

/**
 * Fills the database with SQL, because commands would take days. The daemon must not be running. Returns the secrets of
 * ten of the keys.
 */
export function fill(rankd: Rankd, { keys, changes }: Size): string[] {
  const secrets = addKeys(rankd, { after: 0, count: keys });
  using db = openForFilling(fileOf(rankd));
  db.run(
    `INSERT INTO rank_changes (id, group_title, state, message, rankee_id, rankee_name, ranker_id, ranker_name, new_rank_id,
                               role_id, roles_before, roles_after, phase, key_id, place_id, done_by, dry_run, demotion, privileged, top_rank,
                               requested_at, finished_at)
     SELECT 'chg_fill' || value, 'the simulated group', iif(value % 100 = 0, 'refused', 'applied'),
            'Member is now Officer (rank 20), was Trainee (rank 10).', 1000 + value % 1000000, 'Member' || (value % 1000000), 7 + value % 1000, 'Builder', 20, 120, '[110]', '[120]', 'forward', 'key_fill' || (1 + value % @keys), @place + value % 50,
            'key:key_fill' || (1 + value % @keys), 0, 0, 0, 20, @now - @everyMs * (@count - value), @now - @everyMs * (@count - value) + 5
     FROM ${numbers}`,
    { after: 0, count: changes, now: Date.now(), place, keys, everyMs },
  );
  return secrets;
}

/**
 * Adds `count` keys, each with a whitelisted place, to the `after` existing ones. Returns the secrets of ten of them.
 */
export function addKeys(rankd: Rankd, { after, count }: { after: number; count: number }): string[] {
  using db = openForFilling(fileOf(rankd));
  const minted = Array.from({ length: goodSecrets }, () => mintKey('live'));
  const added = { after, count, now: Date.now() };
  db.run(
    `INSERT INTO keys (id, name, mode, scopes, created_at)
     SELECT 'key_fill' || value, 'fill-' || value, 'live', '["verify","rank"]', @now FROM ${numbers}`,
    added,
  );
  db.run(
    `INSERT INTO key_secrets (key_id, hash, masked, created_at)
     SELECT 'key_fill' || value, randomblob(32), 'rk_live_abc…xyz', @now FROM ${numbers}`,
    added,
  );
  db.run(
    `INSERT INTO whitelist (key_id, place_id, active, note, added_at)
     SELECT 'key_fill' || value, @place, 1, '', @now FROM ${numbers}`,
    { ...added, place },
  );
  for (const [index, { stored }] of minted.entries()) {
    const keyId = `key_fill${1 + after + Math.floor((index * count) / goodSecrets)}`;
    db.run('UPDATE key_secrets SET hash = unhex(@hash), masked = @masked WHERE key_id = @keyId', { ...stored, keyId });
  }
  return minted.map(({ secret }) => secret);
}

function fileOf({ home }: Rankd): string {
  return join(home.dataDir, 'rankd.db');
}

/** The `@count` integers after `@after`. The cast is needed because better-sqlite3 binds numbers as reals. */
const numbers = `(WITH RECURSIVE numbers (value) AS (SELECT CAST(@after AS INTEGER) + 1 UNION ALL SELECT value + 1 FROM numbers WHERE value < @after + @count)
                  SELECT value FROM numbers)`;

/** Opens the database without a journal and without syncing, because a half-filled database is discarded. */
function openForFilling(file: string) {
  const db = new Database(file);
  db.pragma('journal_mode = OFF');
  db.pragma('synchronous = OFF');
  db.pragma('cache_size = -1000000');
  return {
    run: (sql: string, bindings: Record<string, unknown>) => void db.prepare(sql).run(bindings),
    [Symbol.dispose]() {
      db.pragma('journal_mode = WAL');
      db.close();
      toDisk(file);
    },
  };
}

/** Syncs the file now, so that the operating system does not write gigabytes during the measurement. */
function toDisk(file: string): void {
  const open = openSync(file, 'r+');
  fsyncSync(open);
  closeSync(open);
}
