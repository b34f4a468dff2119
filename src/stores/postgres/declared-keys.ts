import type { DeclarationFacts, DeclaredKey, NewDeclaration } from '../../core/declared-keys.ts';
import { exactly } from '../../core/key-rules.ts';
import type { Clock, KeyStore } from '../../ports/index.ts';
import { appendEvents } from './audit.ts';
import { declarationsOf, keepDeclarations } from './declarations.ts';
import type { Database, Reader, Transaction, WriteTransaction } from './engine/database.ts';
import { setRules } from './key-row.ts';
import { addSecret, keysWhere } from './keys.ts';
import type { Nodes } from './nodes.ts';

/** The keys of the configuration, brought into the store: every look-up, history and audit works with them as with all others. */
export function declaredKeyStore(db: Database, clock: Pick<Clock, 'now'>, nodes: Nodes): Pick<KeyStore, 'declareKeys'> {
  return {
    async declareKeys(declared, judge) {
      const now = clock.now();
      const node = await nodes.id();
      return db.write(async (transaction) => {
        const verdict = judge(await declarationFacts(transaction, declared, { node, now }));
        if (!('keys' in verdict)) return { ...verdict, stillDeclared: [] };
        keepDeclarations(transaction, 'declarations', { node, ...verdict });
        for (const key of verdict.keys) await keep(transaction, key, now);
        for (const id of verdict.ended)
          transaction.run('UPDATE rankd.keys SET revoked_at = @now WHERE id = @id', { id, now });
        await appendEvents(transaction, verdict.events);
        return { clashes: [], stillDeclared: verdict.stillDeclared };
      });
    },
  };
}

async function declarationFacts(
  db: Reader,
  declared: readonly NewDeclaration[],
  { node, now }: { node: string; now: number },
): Promise<DeclarationFacts> {
  const nodes = await declarationsOf<NewDeclaration>(db, 'declarations', node);
  const everybodys = [...declared, ...[...nodes.kept, ...nodes.elsewhere].map(({ declaration }) => declaration)];
  const names = declared.map(({ name }) => name);
  const hashes = everybodys.flatMap(({ hash = [] }) => hash);
  const namesake = 'k.declared_in IS NULL AND k.revoked_at IS NULL AND k.name = ANY(@names)';
  const [keys, namesakes, places, secrets] = await Promise.all([
    keysWhere(db, 'k.declared_in IS NOT NULL ORDER BY k.seq DESC', { now }),
    keysWhere(db, `${namesake} ORDER BY k.seq DESC`, { names, now }),
    db.all<{ keyId: string; placeId: number }>(
      'SELECT key_id AS "keyId", place_id AS "placeId" FROM rankd.whitelist WHERE declared_in IS NOT NULL',
    ),
    db.all<{ hash: string; keyId: string; isAccepted: boolean; isOwn: boolean }>(
      `SELECT encode(s.hash, 'hex') AS hash, s.key_id AS "keyId", s.expires_at IS NULL AS "isAccepted",
              k.declared_in IS NULL AS "isOwn"
       FROM rankd.key_secrets AS s JOIN rankd.keys AS k ON k.id = s.key_id
       WHERE encode(s.hash, 'hex') = ANY(@hashes)`,
      { hashes },
    ),
  ]);
  const owners = await keysWhere(db, 'k.id = ANY(@ids)', {
    ids: secrets.filter(({ isOwn }) => isOwn).map(({ keyId }) => keyId),
    now,
  });
  return {
    ...nodes,
    declared: keys.map((key) => ({
      key,
      placeIds: places.filter(({ keyId }) => keyId === key.id).map(({ placeId }) => placeId),
    })),
    namesakes,
    secrets: secrets.map(({ isOwn, ...secret }) => {
      const owner = isOwn ? owners.find(({ id }) => id === secret.keyId) : undefined;
      return { ...secret, ...(owner !== undefined && { owner }) };
    }),
  };
}

async function keep(
  transaction: WriteTransaction,
  { declaration, id, isNew, removedPlaces }: DeclaredKey,
  now: number,
): Promise<void> {
  const { name, mode, scopes, declaredIn, expiresAt, hash, rules, whitelist } = declaration;
  const fields = { id, mode, scopes, declaredIn, expiresAt };
  if (isNew) {
    transaction.run(
      `INSERT INTO rankd.keys (id, name, mode, scopes, created_at, expires_at, declared_in)
       VALUES (@id, @name, @mode, @scopes, @now, @expiresAt, @declaredIn)`,
      { ...fields, name, now },
    );
  } else {
    transaction.run(
      `UPDATE rankd.keys
       SET mode = @mode, scopes = @scopes, expires_at = @expiresAt, declared_in = @declaredIn, revoked_at = NULL
       WHERE id = @id`,
      fields,
    );
  }
  setRules(transaction, id, exactly(rules));
  await keepSecret(transaction, { keyId: id, hash, now });
  for (const placeId of whitelist.placeIds) {
    transaction.run(
      `INSERT INTO rankd.whitelist (key_id, place_id, active, note, added_at, declared_in)
       VALUES (@id, @placeId, true, '', @now, @declaredIn)
       ON CONFLICT (key_id, place_id) DO UPDATE SET active = true, declared_in = excluded.declared_in`,
      { id, placeId, now, declaredIn: whitelist.declaredIn },
    );
  }
  for (const placeId of removedPlaces)
    transaction.run('DELETE FROM rankd.whitelist WHERE key_id = @id AND place_id = @placeId', { id, placeId });
}

/** This secret alone, or none, is accepted from now on; it may have been that of another declared key. */
async function keepSecret(
  transaction: Transaction,
  { keyId, hash, now }: { keyId: string; hash: string | undefined; now: number },
): Promise<void> {
  transaction.run(
    `UPDATE rankd.key_secrets SET replaced_at = coalesce(replaced_at, @now), expires_at = @now
     WHERE key_id = @keyId AND hash IS DISTINCT FROM decode(@hash::text, 'hex') AND (expires_at IS NULL OR expires_at > @now)`,
    { keyId, hash: hash ?? null, now },
  );
  if (hash === undefined) return;
  const moved = await transaction.count(
    `UPDATE rankd.key_secrets SET key_id = @keyId, replaced_at = NULL, expires_at = NULL WHERE hash = decode(@hash, 'hex')`,
    { keyId, hash },
  );
  if (moved === 0) addSecret(transaction, { keyId, secret: { hash, masked: `sha256:${hash.slice(0, 8)}…` }, now });
}
