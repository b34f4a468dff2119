import { RankdError } from '../../base/errors.ts';
import { type KeyEdit, type KeyRulesChange, ruleNames, rulesOf } from '../../core/key-changes.ts';
import type { Key, KeySecret } from '../../core/model.ts';
import type { Clock, KeySelection, KeyStore, NewSecret } from '../../ports/index.ts';
import { appendEvents } from './audit.ts';
import type { Database, Dialect, Reader, Transaction } from './database.ts';
import { allowed, editableKeyColumns, keyRuleColumns, type RowOf, whereOf, withoutNulls } from './rows.ts';

export function keyStore(
  db: Database,
  clock: Pick<Clock, 'now'>,
): Omit<KeyStore, 'freshen' | 'lookUpKey' | 'declareKeys'> {
  const { schema } = db.sql;
  return {
    async createKey(key, judge) {
      const now = clock.now();
      const { id, name, mode, scopes, expiresAt, isSimulated, secret } = key;
      return db.write(async (transaction) => {
        const [namesake] = await keysWhere(transaction, 'k.name = @name AND k.revoked_at IS NULL', { name, now });
        const { change, events } = allowed(judge(namesake));
        transaction.run(
          `INSERT INTO ${schema}.keys (id, name, mode, scopes, created_at, expires_at, is_simulated)
           VALUES (@id, @name, @mode, @scopes, @now, @expiresAt, @isSimulated)`,
          { id, name, mode, scopes: JSON.stringify(scopes), now, expiresAt, isSimulated: isSimulated || undefined },
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
      const { limit = Number.MAX_SAFE_INTEGER } = selection;
      const where = whereOf(conditionsOf(db.sql), selection);
      return keysWhere(db, `${where} ORDER BY k.seq LIMIT @limit`, { ...selection, limit, now: clock.now() });
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
      const newest = new Map(uses.map((use) => [use.secretId, use]));
      await db.write(async (transaction) => {
        for (const { secretId, at, placeId } of newest.values())
          transaction.run(recordUse(schema), { secretId: Number(secretId), at, placeId });
      });
    },
  };
}

/** Returns the SQL that stores a secret's use, unless a more recent one is already stored. */
function recordUse(schema: string): string {
  return `
    INSERT INTO ${schema}.secret_uses AS stored (secret_seq, last_used_at, last_place_id) VALUES (@secretId, @at, @placeId)
    ON CONFLICT (secret_seq) DO UPDATE SET last_used_at = excluded.last_used_at, last_place_id = excluded.last_place_id
    WHERE excluded.last_used_at >= stored.last_used_at`;
}

function conditionsOf({ schema, anyOf }: Dialect) {
  return {
    ids: anyOf('k.id', '@ids'),
    name: 'k.name = @name',
    after: `k.seq > (SELECT seq FROM ${schema}.keys WHERE id = @after)`,
    acceptedAt: 'k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > @acceptedAt)',
    isSimulated: 'coalesce(k.is_simulated, false) = @isSimulated',
  } as const satisfies Record<Exclude<keyof KeySelection, 'limit'>, string>;
}

/**
 * Writes a key's changed fields, rules and secret. If there is a new secret, the older ones expire no later than
 * `olderUntil`.
 */
export function editKey(
  transaction: Transaction,
  { keyId, edit, now }: { keyId: string; edit: KeyEdit; now: number },
): void {
  const { schema, least } = transaction.sql;
  const { rules, secret, ...fields } = edit;
  for (const field of Object.keys(fields) as Array<keyof typeof fields>) {
    const value = fields[field];
    transaction.run(`UPDATE ${schema}.keys SET ${editableKeyColumns[field]} = @value WHERE id = @keyId`, {
      keyId,
      value,
    });
  }
  if (rules !== undefined) setRules(transaction, keyId, rules);
  if (secret === undefined) return;
  transaction.run(
    `UPDATE ${schema}.key_secrets SET replaced_at = coalesce(replaced_at, @now),
       expires_at = ${least('coalesce(expires_at, @olderUntil)', '@olderUntil')}
     WHERE key_id = @keyId`,
    { keyId, olderUntil: secret.olderUntil, now },
  );
  addSecret(transaction, { keyId, secret, now });
}

export async function requireKey(db: Reader, id: string, now: number): Promise<Key> {
  const [key] = await keysWhere(db, 'k.id = @id', { id, now });
  if (key !== undefined) return key;
  throw new RankdError('not_found', `There is no key ${id}.`, { hint: '`rankd key list` lists all keys' });
}

export async function keysWhere(
  db: Reader,
  where: string,
  bindings: { now: number; [name: string]: unknown },
): Promise<Key[]> {
  const rows = await db.all<KeyRow>(
    `SELECT ${keyColumns(db.sql)} FROM ${db.sql.schema}.keys AS k WHERE ${where}`,
    bindings,
  );
  return rows.map((row) => toKey(row, db.sql));
}

export function addSecret(
  transaction: Transaction,
  { keyId, secret: { hash, masked }, now }: { keyId: string; secret: NewSecret; now: number },
): void {
  const { schema, bytesOf } = transaction.sql;
  transaction.run(
    `INSERT INTO ${schema}.key_secrets (key_id, hash, masked, created_at) VALUES (@keyId, ${bytesOf('@hash')}, @masked, @now)`,
    { keyId, hash, masked, now },
  );
}

export type KeyRow = RowOf<Key>;

const ruleColumns = ruleNames.map((rule) => `k.${keyRuleColumns[rule]} AS "${rule}"`).join(', ');

const secretFields = {
  masked: 's.masked',
  createdAt: 's.created_at',
  replacedAt: 's.replaced_at',
  expiresAt: 's.expires_at',
  lastUsedAt: 'u.last_used_at',
  lastPlaceId: 'u.last_place_id',
} satisfies Record<keyof KeySecret, string>;

/**
 * Returns the select list of a `KeyRow` for a query on `keys AS k`, with the secrets that are valid at `@now`, newest
 * first.
 */
export function keyColumns({ schema, jsonRows }: Dialect): string {
  return `
    k.id, k.name, k.mode, k.scopes, ${ruleColumns},
    k.created_at AS "createdAt", k.expires_at AS "expiresAt",
    k.revoked_at AS "revokedAt", k.paused_at AS "pausedAt", k.resumed_at AS "resumedAt", k.is_simulated AS "isSimulated",
    CASE WHEN k.revoked_at IS NULL THEN k.declared_in END AS "declaredIn",
    (SELECT ${jsonRows(secretFields, 's.seq DESC')}
     FROM ${schema}.key_secrets AS s LEFT JOIN ${schema}.secret_uses AS u ON u.secret_seq = s.seq
     WHERE s.key_id = k.id AND (s.expires_at IS NULL OR s.expires_at > @now)) AS secrets`;
}

export function toKey(
  { scopes, secrets, isSystem, isPrivileged, isAnyPlace, isSimulated, isForDiscord, ...row }: KeyRow,
  { parse }: Dialect,
): Key {
  const accepted = parse(secrets) as RowOf<KeySecret>[];
  const flags = {
    ...(isSystem && { isSystem: true }),
    ...(isPrivileged && { isPrivileged: true }),
    ...(isAnyPlace && { isAnyPlace: true }),
    ...(isSimulated && { isSimulated: true }),
    ...(isForDiscord && { isForDiscord: true }),
  };
  return { ...withoutNulls(row), ...flags, scopes: JSON.parse(scopes), secrets: accepted.map(withoutNulls) };
}

/** Sets the given rules of a key. `null` removes a rule, and `undefined` leaves it unchanged. */
export function setRules(transaction: Transaction, keyId: string, change: KeyRulesChange): void {
  for (const rule of ruleNames) {
    const value = change[rule];
    if (value === undefined) continue;
    const column = keyRuleColumns[rule];
    transaction.run(`UPDATE ${transaction.sql.schema}.keys SET ${column} = @value WHERE id = @keyId`, { keyId, value });
  }
}
