import { RankdError } from '../../base/errors.ts';
import { refuseDeclared } from '../../core/declared.ts';
import { keyPaused, keyResumed } from '../../core/events.ts';
import type { Key } from '../../core/model.ts';
import type { Clock, KeySelection, KeyStore, NewSecret } from '../../ports/index.ts';
import { appendEvent } from './audit.ts';
import type { Connection } from './engine/connection.ts';
import { whereOf } from './engine/where.ts';
import { type KeyRow, keyColumns, toKey } from './key-row.ts';
import { rulesOf, setRules } from './key-rules.ts';

export function keyStore(db: Connection, clock: Pick<Clock, 'now'>): Omit<KeyStore, 'lookUpKey' | 'declareKeys'> {
  return {
    async createKey(key, by) {
      const now = clock.now();
      const { id, name, mode, scopes, expiresAt } = key;
      return db.write(() => {
        refuseTakenName(db, name);
        db.run(
          `INSERT INTO keys (id, name, mode, scopes, created_at, expires_at)
           VALUES (@id, @name, @mode, @scopes, @now, @expiresAt)`,
          { id, name, mode, scopes: JSON.stringify(scopes), now, expiresAt },
        );
        const rules = rulesOf(key);
        setRules(db, { id }, rules);
        addSecret(db, { keyId: id, secret: key.secret, now });
        const detail = { name, mode, scopes, ...rules, expiresAt };
        appendEvent(db, { at: now, by, action: 'key.create', subject: id, detail });
        return requireKey(db, id, now);
      });
    },

    async findKey(idOrName) {
      const row = db.get<KeyRow>(
        `SELECT ${keyColumns} FROM keys AS k WHERE k.id = @idOrName OR k.name = @idOrName
         ORDER BY k.id = @idOrName DESC, k.revoked_at IS NULL DESC, k.seq DESC LIMIT 1`,
        { idOrName, now: clock.now() },
      );
      return row && toKey(row);
    },

    async listKeys(selection = {}) {
      const { ids, limit = -1 } = selection; // -1 is no limit
      const bindings = { ...selection, ids: JSON.stringify(ids), limit, now: clock.now() };
      return db
        .all<KeyRow>(
          `SELECT ${keyColumns} FROM keys AS k WHERE ${whereOf(conditions, selection)} ORDER BY k.seq LIMIT @limit`,
          bindings,
        )
        .map(toKey);
    },

    async rotateKey({ keyId, secret, oldExpiresAt }, by) {
      const now = clock.now();
      return db.write(() => {
        refuseRevoked(requireOwnKey(db, keyId, now), 'it cannot get a new secret');
        // Never later than it was: a second rotation does not give a secret that is on its way out more time.
        db.run(
          `UPDATE key_secrets SET replaced_at = coalesce(replaced_at, @now),
                                  expires_at = min(coalesce(expires_at, @oldExpiresAt), @oldExpiresAt)
           WHERE key_id = @keyId`,
          { keyId, oldExpiresAt, now },
        );
        addSecret(db, { keyId, secret, now });
        appendEvent(db, { at: now, by, action: 'key.rotate', subject: keyId, detail: { oldExpiresAt } });
        return requireKey(db, keyId, now);
      });
    },

    async updateKey({ keyId, rules }, by) {
      const now = clock.now();
      return db.write(() => {
        const key = requireOwnKey(db, keyId, now);
        refuseRevoked(key, 'there is nothing left to set');
        const detail = setRules(db, key, rules);
        appendEvent(db, { at: now, by, action: 'key.set', subject: keyId, detail });
        return requireKey(db, keyId, now);
      });
    },

    async revokeKey(keyId, by) {
      const now = clock.now();
      return db.write(() => {
        requireOwnKey(db, keyId, now);
        db.run('UPDATE keys SET revoked_at = coalesce(revoked_at, @now) WHERE id = @keyId', { keyId, now });
        appendEvent(db, { at: now, by, action: 'key.revoke', subject: keyId, detail: {} });
        return requireKey(db, keyId, now);
      });
    },

    async pauseKey(change, by) {
      const now = clock.now();
      return db.write(() => {
        setPaused(db, { ...change, now });
        appendEvent(db, (change.paused ? keyPaused : keyResumed)(change, { by, at: now }));
        return requireKey(db, change.keyId, now);
      });
    },

    async recordKeyUses(uses) {
      await db.write(() => {
        for (const { secretId, at, placeId } of uses) {
          db.run('UPDATE key_secrets SET last_used_at = @at, last_place_id = @placeId WHERE seq = @secretId', {
            secretId,
            at,
            placeId,
          });
        }
      });
    },
  };
}

/** What each part of a selection asks of a key. */
const conditions = {
  ids: 'k.id IN (SELECT value FROM json_each(@ids))',
  name: 'k.name = @name',
  after: 'k.seq > (SELECT seq FROM keys WHERE id = @after)',
} as const satisfies Record<Exclude<keyof KeySelection, 'limit'>, string>;

/** Pauses a key or lifts the pause; part of a transaction. */
export function setPaused(
  db: Connection,
  { keyId, paused, now }: { keyId: string; paused: boolean; now: number },
): void {
  db.run(
    `UPDATE keys SET paused_at = iif(@paused, coalesce(paused_at, @now), NULL),
                     resumed_at = iif(@paused, resumed_at, @now)
     WHERE id = @keyId`,
    { keyId, paused: Number(paused), now },
  );
}

/** The key of an id. Throws `not_found`. */
export function requireKey(db: Connection, id: string, now: number): Key {
  const key = findKey(db, id, now);
  if (key !== undefined) return key;
  throw new RankdError('not_found', `There is no key ${id}.`, { hint: '`rankd key list` shows the keys there are' });
}

export function findKey(db: Connection, id: string, now: number): Key | undefined {
  const row = db.get<KeyRow>(`SELECT ${keyColumns} FROM keys AS k WHERE k.id = @id`, { id, now });
  return row && toKey(row);
}

/** The key of an id, where it is not declared. Throws `not_found` or `conflict`. */
function requireOwnKey(db: Connection, id: string, now: number): Key {
  const key = requireKey(db, id, now);
  refuseDeclared(`Key "${key.name}"`, key);
  return key;
}

function refuseRevoked({ name, revokedAt }: Key, consequence: string): void {
  if (revokedAt === undefined) return;
  throw new RankdError('conflict', `Key ${name} is revoked, so ${consequence}.`, {
    hint: 'make a new key with `rankd key create NAME`',
  });
}

function refuseTakenName(db: Connection, name: string): void {
  const taken = db.get('SELECT 1 FROM keys WHERE name = @name AND revoked_at IS NULL', { name });
  if (taken !== undefined) {
    throw new RankdError('already_exists', `A key named ${name} exists already.`, {
      hint: `look at it with \`rankd key show ${name}\`, or pass --if-not-exists`,
    });
  }
}

/** Part of a transaction. */
export function addSecret(
  db: Connection,
  { keyId, secret, now }: { keyId: string; secret: NewSecret; now: number },
): void {
  db.run('INSERT INTO key_secrets (key_id, hash, masked, created_at) VALUES (@keyId, unhex(@hash), @masked, @now)', {
    keyId,
    hash: secret.hash,
    masked: secret.masked,
    now,
  });
}
