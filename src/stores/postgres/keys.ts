import { RankdError } from '../../base/errors.ts';
import type { KeyEdit } from '../../core/key-changes.ts';
import { rulesOf } from '../../core/key-rules.ts';
import type { Key } from '../../core/model.ts';
import type { Clock, KeySelection, KeyStore, NewSecret } from '../../ports/index.ts';
import { allowed } from '../allowed.ts';
import { editableKeyColumns } from '../columns.ts';
import { whereOf } from '../where.ts';
import { appendEvents } from './audit.ts';
import type { Database, Reader, Transaction } from './engine/database.ts';
import { type KeyRow, keyColumns, setRules, toKey } from './key-row.ts';

export function keyStore(
  db: Database,
  clock: Pick<Clock, 'now'>,
): Omit<KeyStore, 'freshen' | 'lookUpKey' | 'declareKeys'> {
  return {
    async createKey(key, judge) {
      const now = clock.now();
      const { id, name, mode, scopes, expiresAt, isSimulated, secret } = key;
      return db.write(async (transaction) => {
        const [namesake] = await keysWhere(transaction, 'k.name = @name AND k.revoked_at IS NULL', { name, now });
        const { change, events } = allowed(judge(namesake));
        transaction.run(
          `INSERT INTO rankd.keys (id, name, mode, scopes, created_at, expires_at, is_simulated)
           VALUES (@id, @name, @mode, @scopes, @now, @expiresAt, @isSimulated)`,
          { id, name, mode, scopes, now, expiresAt, isSimulated: isSimulated ? true : undefined },
        );
        setRules(transaction, id, rulesOf(change));
        if (secret !== undefined) addSecret(transaction, { keyId: id, secret, now });
        await appendEvents(transaction, events);
        return requireKey(transaction, id, now);
      });
    },

    async findKey(idOrName) {
      const [key] = await keysWhere(
        db,
        `k.id = @idOrName OR k.name = @idOrName
         ORDER BY k.id = @idOrName DESC, k.revoked_at IS NULL DESC, k.seq DESC LIMIT 1`,
        { idOrName, now: clock.now() },
      );
      return key;
    },

    async listKeys(selection = {}) {
      const query = { ...selection, now: clock.now() };
      return keysWhere(db, `${whereOf(conditions, selection)} ORDER BY k.seq LIMIT @limit`, query);
    },

    async updateKey(keyId, judge) {
      const now = clock.now();
      return db.write(async (transaction) => {
        const { change, events } = allowed(judge(await requireKey(transaction, keyId, now)));
        editKey(transaction, { keyId, edit: change, now });
        await appendEvents(transaction, events);
        return requireKey(transaction, keyId, now);
      });
    },

    async recordKeyUses(uses) {
      const newest = [...new Map(uses.map((use) => [use.secretId, use])).values()];
      await db.work(recordUses, {
        secrets: newest.map(({ secretId }) => Number(secretId)),
        times: newest.map(({ at }) => at),
        places: newest.map(({ placeId }) => placeId ?? null),
      });
    },
  };
}

/** Several nodes tell of one secret; the newest use stays. */
const recordUses = `
  INSERT INTO rankd.secret_uses AS kept (secret_seq, last_used_at, last_place_id)
  SELECT * FROM unnest(@secrets::bigint[], @times::bigint[], @places::bigint[]) AS used (secret, at, place) ORDER BY secret
  ON CONFLICT (secret_seq) DO UPDATE SET last_used_at = excluded.last_used_at, last_place_id = excluded.last_place_id
  WHERE excluded.last_used_at >= kept.last_used_at`;

/** The condition for each part of a selection. */
const conditions = {
  ids: 'k.id = ANY(@ids)',
  name: 'k.name = @name',
  after: 'k.seq > (SELECT seq FROM rankd.keys WHERE id = @after)',
  acceptedAt: 'k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > @acceptedAt)',
  isSimulated: 'coalesce(k.is_simulated, false) = @isSimulated',
} as const satisfies Record<Exclude<keyof KeySelection, 'limit'>, string>;

/** Writes what changes of a key; part of a transaction. */
export function editKey(
  transaction: Transaction,
  { keyId, edit, now }: { keyId: string; edit: KeyEdit; now: number },
): void {
  const { rules, secret, ...fields } = edit;
  for (const field of Object.keys(fields) as Array<keyof typeof fields>) {
    const value = fields[field];
    transaction.run(`UPDATE rankd.keys SET ${editableKeyColumns[field]} = @value WHERE id = @keyId`, { keyId, value });
  }
  if (rules !== undefined) setRules(transaction, keyId, rules);
  if (secret === undefined) return;
  transaction.run(
    `UPDATE rankd.key_secrets SET replaced_at = coalesce(replaced_at, @now),
                                  expires_at = least(coalesce(expires_at, @olderUntil), @olderUntil)
     WHERE key_id = @keyId`,
    { keyId, olderUntil: secret.olderUntil, now },
  );
  addSecret(transaction, { keyId, secret, now });
}

/** The key of an id. Throws `not_found`. */
export async function requireKey(db: Reader, id: string, now: number): Promise<Key> {
  const [key] = await keysWhere(db, 'k.id = @id', { id, now });
  if (key !== undefined) return key;
  throw new RankdError('not_found', `There is no key ${id}.`, { hint: '`rankd key list` shows the keys there are' });
}

export async function keysWhere(
  db: Reader,
  where: string,
  bindings: { now: number; [name: string]: unknown },
): Promise<Key[]> {
  return (await db.all<KeyRow>(`SELECT ${keyColumns} FROM rankd.keys AS k WHERE ${where}`, bindings)).map(toKey);
}

/** Part of a transaction. */
export function addSecret(
  transaction: Transaction,
  { keyId, secret: { hash, masked }, now }: { keyId: string; secret: NewSecret; now: number },
): void {
  transaction.run(
    `INSERT INTO rankd.key_secrets (key_id, hash, masked, created_at)
     VALUES (@keyId, decode(@hash, 'hex'), @masked, @now)`,
    { keyId, hash, masked, now },
  );
}
