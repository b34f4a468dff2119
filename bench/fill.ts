import { closeSync, fsyncSync, openSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { mintKey } from '../src/core/api-key.ts';
import { place, type Rankd } from './daemon.ts';

/** How much a database holds. */
export interface Size {
  keys: number;
  changes: number;
}

/** As good as nothing, but a key for each of `goodSecrets`. */
export const small: Size = { keys: 10, changes: 10 };

/** From one change to the next: five million of them take a month, which is about as fast as Roblox lets ranks be changed. */
const everyMs = 500;

/** Secrets that are good for the bench's place, among all the keys that are filled in. */
const goodSecrets = 10;

/** Fills the database of a rankd that does not run, by SQL: through the commands it would take days. Returns the secrets of some of its keys. */
export function fill(rankd: Rankd, { keys, changes }: Size): string[] {
  const secrets = addKeys(rankd, { after: 0, count: keys });
  using db = openForFilling(fileOf(rankd));
  db.run(
    `INSERT INTO rank_changes (id, group_title, state, message, rankee_id, rankee_name, ranker_id, ranker_name, new_rank_id,
                               role_id, roles_before, roles_after, phase, key_id, place_id, done_by, dry_run, demotion, top_rank,
                               requested_at, finished_at)
     SELECT 'chg_fill' || value, 'the simulated group', iif(value % 100 = 0, 'refused', 'applied'),
            'Member is now Officer (rank 20), was Trainee (rank 10).', 1000 + value % 1000000, 'Member' || (value % 1000000), 7 + value % 1000, 'Builder', 20, 120, '[110]', '[120]', 'forward', 'key_fill' || (1 + value % @keys), @place + value % 50,
            'key:key_fill' || (1 + value % @keys), 0, 0, 20, @now - @everyMs * (@count - value), @now - @everyMs * (@count - value) + 5
     FROM ${numbers}`,
    { after: 0, count: changes, now: Date.now(), place, keys, everyMs },
  );
  return secrets;
}

/** Adds keys, each with a place, behind those that were filled in. Returns the secrets of some of them. */
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

/** So many whole numbers, the first of them behind `@after`: what is bound is no whole number to SQLite. */
const numbers = `(WITH RECURSIVE numbers (value) AS (SELECT CAST(@after AS INTEGER) + 1 UNION ALL SELECT value + 1 FROM numbers WHERE value < @after + @count)
                  SELECT value FROM numbers)`;

/** Without care for a crash: what is half filled is thrown away. */
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

/** Else the system writes gigabytes while it is measured. */
function toDisk(file: string): void {
  const open = openSync(file, 'r+');
  fsyncSync(open);
  closeSync(open);
}
