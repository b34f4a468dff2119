import type { DeclarationFacts, DeclaredKey, NewDeclaration } from '../../core/declared-keys.ts';
import { exactly } from '../../core/key-changes.ts';
import type { Clock, KeyStore } from '../../ports/index.ts';
import { appendEvents } from './audit.ts';
import { type Database, type DeclarationsOf, noDeclarations, type Reader, type Transaction } from './database.ts';
import { addSecret, keysWhere, setRules } from './keys.ts';

/**
 * Returns the store for keys declared in the configuration. It stores them like any other keys, so lookups, the history
 * and the audit log need no special case.
 */
export function declaredKeyStore(
  db: Database,
  clock: Pick<Clock, 'now'>,
  declarationsOf: DeclarationsOf,
): Pick<KeyStore, 'declareKeys'> {
  return {
    async declareKeys(declared, judge) {
      const now = clock.now();
      const declarations = await declarationsOf?.<NewDeclaration>('keys');
      return db.write(async (transaction) => {
        const nodes = (await declarations?.find(transaction)) ?? noDeclarations;
        const verdict = judge({ ...nodes, ...(await factsOf(transaction, { declared, nodes, now })) });
        if (!('keys' in verdict)) return { ...verdict, stillDeclared: [] };
        declarations?.store(transaction, verdict);
        for (const key of verdict.keys) await applyDeclaration(transaction, key, now);
        for (const id of verdict.ended)
          transaction.run(`UPDATE ${db.sql.schema}.keys SET revoked_at = @now WHERE id = @id`, { id, now });
        await appendEvents(transaction, verdict.events);
        return { clashes: [], stillDeclared: verdict.stillDeclared };
      });
    },
  };
}

type NodeFacts = Pick<DeclarationFacts, 'stored' | 'elsewhere'>;

async function factsOf(
  db: Reader,
  { declared, nodes, now }: { declared: readonly NewDeclaration[]; nodes: NodeFacts; now: number },
): Promise<Omit<DeclarationFacts, keyof NodeFacts>> {
  const { schema, anyOf, hexOf } = db.sql;
  const everywhere = [...declared, ...[...nodes.stored, ...nodes.elsewhere].map(({ declaration }) => declaration)];
  const names = declared.map(({ name }) => name);
  const hashes = everywhere.flatMap(({ hash = [] }) => hash);
  const namesake = `k.declared_in IS NULL AND k.revoked_at IS NULL AND ${anyOf('k.name', '@names')}`;
  const [keys, namesakes, places, secrets] = await Promise.all([
    keysWhere(db, 'k.declared_in IS NOT NULL ORDER BY k.seq DESC', { now }),
    keysWhere(db, `${namesake} ORDER BY k.seq DESC`, { names, now }),
    db.all<{ keyId: string; placeId: number }>(
      `SELECT key_id AS "keyId", place_id AS "placeId" FROM ${schema}.whitelist WHERE declared_in IS NOT NULL`,
    ),
    db.all<{ hash: string; keyId: string; isAccepted: boolean | number; isOwn: boolean | number }>(
      `SELECT ${hexOf('s.hash')} AS hash, s.key_id AS "keyId", s.expires_at IS NULL AS "isAccepted",
              k.declared_in IS NULL AS "isOwn"
       FROM ${schema}.key_secrets AS s JOIN ${schema}.keys AS k ON k.id = s.key_id
       WHERE ${anyOf(hexOf('s.hash'), '@hashes')}`,
      { hashes },
    ),
  ]);
  const owners = await keysWhere(db, anyOf('k.id', '@ids'), {
    ids: secrets.filter(({ isOwn }) => isOwn).map(({ keyId }) => keyId),
    now,
  });
  return {
    declared: keys.map((key) => ({
      key,
      placeIds: places.filter(({ keyId }) => keyId === key.id).map(({ placeId }) => placeId),
    })),
    namesakes,
    secrets: secrets.map(({ isAccepted, isOwn, ...secret }) => {
      const owner = isOwn ? owners.find(({ id }) => id === secret.keyId) : undefined;
      return { ...secret, isAccepted: Boolean(isAccepted), ...(owner !== undefined && { owner }) };
    }),
  };
}

async function applyDeclaration(
  transaction: Transaction,
  { declaration, id, isNew, removedPlaces }: DeclaredKey,
  now: number,
): Promise<void> {
  const { schema } = transaction.sql;
  const { name, mode, scopes, declaredIn, expiresAt, hash, rules, whitelist } = declaration;
  const fields = { id, mode, scopes: JSON.stringify(scopes), declaredIn, expiresAt };
  if (isNew) {
    transaction.run(
      `INSERT INTO ${schema}.keys (id, name, mode, scopes, created_at, expires_at, declared_in)
       VALUES (@id, @name, @mode, @scopes, @now, @expiresAt, @declaredIn)`,
      { ...fields, name, now },
    );
  } else {
    transaction.run(
      `UPDATE ${schema}.keys
       SET mode = @mode, scopes = @scopes, expires_at = @expiresAt, declared_in = @declaredIn, revoked_at = NULL
       WHERE id = @id`,
      fields,
    );
  }
  setRules(transaction, id, exactly(rules));
  await acceptOnly(transaction, { keyId: id, hash, now });
  for (const placeId of whitelist.placeIds) {
    transaction.run(
      `INSERT INTO ${schema}.whitelist (key_id, place_id, active, note, added_at, declared_in)
       VALUES (@id, @placeId, true, '', @now, @declaredIn)
       ON CONFLICT (key_id, place_id) DO UPDATE SET active = true, declared_in = excluded.declared_in`,
      { id, placeId, now, declaredIn: whitelist.declaredIn },
    );
  }
  for (const placeId of removedPlaces)
    transaction.run(`DELETE FROM ${schema}.whitelist WHERE key_id = @id AND place_id = @placeId`, { id, placeId });
}

/** Makes this secret the only one that the key accepts, moving it from another declared key if necessary. */
async function acceptOnly(
  transaction: Transaction,
  { keyId, hash, now }: { keyId: string; hash: string | undefined; now: number },
): Promise<void> {
  const { schema, bytesOf } = transaction.sql;
  transaction.run(
    `UPDATE ${schema}.key_secrets SET replaced_at = coalesce(replaced_at, @now), expires_at = @now
     WHERE key_id = @keyId AND (CAST(@hash AS text) IS NULL OR hash <> ${bytesOf('@hash')}) AND (expires_at IS NULL OR expires_at > @now)`,
    { keyId, hash, now },
  );
  if (hash === undefined) return;
  const moved = await transaction.count(
    `UPDATE ${schema}.key_secrets SET key_id = @keyId, replaced_at = NULL, expires_at = NULL WHERE hash = ${bytesOf('@hash')}`,
    { keyId, hash },
  );
  if (moved === 0) addSecret(transaction, { keyId, secret: { hash, masked: `sha256:${hash.slice(0, 8)}…` }, now });
}
