import { RankdError } from '../../base/errors.ts';
import type { KeyEdit } from '../../core/key-changes.ts';
import { rulesOf } from '../../core/key-rules.ts';
import type { Key } from '../../core/model.ts';
import type { Clock, KeySelection, KeyStore, NewSecret } from '../../ports/index.ts';
import { allowed } from '../allowed.ts';
import { editableKeyColumns } from '../columns.ts';
import { whereOf } from '../where.ts';
import { appendEvents } from './audit.ts';
import type { Connection } from './engine/connection.ts';
import { type KeyRow, keyColumns, toKey } from './key-row.ts';
import { setRules } from './key-rules.ts';

export function keyStore(
  db: Connection,
  clock: Pick<Clock, 'now'>,
): Omit<KeyStore, 'freshen' | 'lookUpKey' | 'declareKeys'> {
  return {
    async createKey(key, judge) {
      const now = clock.now();
      const { id, name, mode, scopes, expiresAt, isSimulated, secret } = key;
      return db.write(() => {
        const namesake = findWhere(db, 'k.name = @name AND k.revoked_at IS NULL', { name, now });
        const { change, events } = allowed(judge(namesake));
        db.run(
          `INSERT INTO keys (id, name, mode, scopes, created_at, expires_at, is_simulated)
           VALUES (@id, @name, @mode, @scopes, @now, @expiresAt, @isSimulated)`,
          { id, name, mode, scopes: JSON.stringify(scopes), now, expiresAt, isSimulated: isSimulated ? 1 : undefined },
        );
        setRules(db, id, rulesOf(change));
        if (secret !== undefined) addSecret(db, { keyId: id, secret, now });
        appendEvents(db, events);
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
      const bindings = {
        ...selection,
        ids: JSON.stringify(ids),
        isSimulated: Number(selection.isSimulated ?? false),
        limit,
        now: clock.now(),
      };
      return db
        .all<KeyRow>(
          `SELECT ${keyColumns} FROM keys AS k WHERE ${whereOf(conditions, selection)} ORDER BY k.seq LIMIT @limit`,
          bindings,
        )
        .map(toKey);
    },

    async updateKey(keyId, judge) {
      const now = clock.now();
      return db.write(() => {
        const { change, events } = allowed(judge(requireKey(db, keyId, now)));
        editKey(db, { keyId, edit: change, now });
        appendEvents(db, events);
        return requireKey(db, keyId, now);
      });
    },

    async recordKeyUses(uses) {
      await db.write(() => {
        for (const { secretId, at, placeId } of uses) {
          db.run('UPDATE key_secrets SET last_used_at = @at, last_place_id = @placeId WHERE seq = @secretId', {
            secretId: Number(secretId),
            at,
            placeId: placeId ?? null,
          });
        }
      });
    },
  };
}

/** The condition for each part of a selection. */
const conditions = {
  ids: 'k.id IN (SELECT value FROM json_each(@ids))',
  name: 'k.name = @name',
  after: 'k.seq > (SELECT seq FROM keys WHERE id = @after)',
  acceptedAt: 'k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > @acceptedAt)',
  isSimulated: 'coalesce(k.is_simulated, 0) = @isSimulated',
} as const satisfies Record<Exclude<keyof KeySelection, 'limit'>, string>;

/** Writes what changes of a key; part of a transaction. */
export function editKey(db: Connection, { keyId, edit, now }: { keyId: string; edit: KeyEdit; now: number }): void {
  const { rules, secret, ...fields } = edit;
  for (const field of Object.keys(fields) as Array<keyof typeof fields>)
    db.run(`UPDATE keys SET ${editableKeyColumns[field]} = @value WHERE id = @keyId`, { keyId, value: fields[field] });
  if (rules !== undefined) setRules(db, keyId, rules);
  if (secret === undefined) return;
  db.run(
    `UPDATE key_secrets SET replaced_at = coalesce(replaced_at, @now),
                            expires_at = min(coalesce(expires_at, @olderUntil), @olderUntil)
     WHERE key_id = @keyId`,
    { keyId, olderUntil: secret.olderUntil, now },
  );
  addSecret(db, { keyId, secret, now });
}

/** The key of an id. Throws `not_found`. */
export function requireKey(db: Connection, id: string, now: number): Key {
  const key = findKey(db, id, now);
  if (key !== undefined) return key;
  throw new RankdError('not_found', `There is no key ${id}.`, { hint: '`rankd key list` shows the keys there are' });
}

function findKey(db: Connection, id: string, now: number): Key | undefined {
  return findWhere(db, 'k.id = @id', { id, now });
}

function findWhere(db: Connection, where: string, bindings: { now: number; [name: string]: string | number }) {
  const row = db.get<KeyRow>(`SELECT ${keyColumns} FROM keys AS k WHERE ${where}`, bindings);
  return row && toKey(row);
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
