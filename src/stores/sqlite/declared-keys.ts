import type { DeclarationFacts, DeclaredKey, NewDeclaration } from '../../core/declared-keys.ts';
import { exactly } from '../../core/key-rules.ts';
import type { Clock, KeyStore } from '../../ports/index.ts';
import { appendEvents } from './audit.ts';
import type { Connection } from './engine/connection.ts';
import { type KeyRow, keyColumns, toKey } from './key-row.ts';
import { setRules } from './key-rules.ts';
import { addSecret } from './keys.ts';

/** The keys of the configuration, brought into the store: every look-up, history and audit works with them as with all others. */
export function declaredKeyStore(db: Connection, clock: Pick<Clock, 'now'>): Pick<KeyStore, 'declareKeys'> {
  return {
    async declareKeys(declared, judge) {
      const now = clock.now();
      return db.write(() => {
        const verdict = judge(declarationFacts(db, declared, now));
        if (!('keys' in verdict)) return { ...verdict, stillDeclared: [] };
        for (const key of verdict.keys) keep(db, key, now);
        for (const id of verdict.ended) db.run('UPDATE keys SET revoked_at = @now WHERE id = @id', { id, now });
        appendEvents(db, verdict.events);
        return { clashes: [], stillDeclared: [] };
      });
    },
  };
}

function declarationFacts(db: Connection, declared: readonly NewDeclaration[], now: number): DeclarationFacts {
  const names = JSON.stringify(declared.map(({ name }) => name));
  const hashes = JSON.stringify(declared.flatMap(({ hash = [] }) => hash));
  const keysWhere = (where: string) =>
    db.all<KeyRow>(`SELECT ${keyColumns} FROM keys AS k WHERE ${where} ORDER BY k.seq DESC`, { names, now }).map(toKey);
  const places = db.all<{ keyId: string; placeId: number }>(
    'SELECT key_id AS keyId, place_id AS placeId FROM whitelist WHERE declared_in IS NOT NULL',
  );
  const secrets = db.all<{ hash: string; keyId: string; isAccepted: number; isOwn: number }>(
    `SELECT lower(hex(s.hash)) AS hash, s.key_id AS keyId, s.expires_at IS NULL AS isAccepted, k.declared_in IS NULL AS isOwn
     FROM key_secrets AS s JOIN keys AS k ON k.id = s.key_id
     WHERE s.hash IN (SELECT unhex(value) FROM json_each(@hashes))`,
    { hashes },
  );
  return {
    declared: keysWhere('k.declared_in IS NOT NULL').map((key) => ({
      key,
      placeIds: places.filter(({ keyId }) => keyId === key.id).map(({ placeId }) => placeId),
    })),
    kept: [],
    elsewhere: [],
    namesakes: keysWhere(
      'k.declared_in IS NULL AND k.revoked_at IS NULL AND k.name IN (SELECT value FROM json_each(@names))',
    ),
    secrets: secrets.map(({ isAccepted, isOwn, ...secret }) => {
      const [owner] = isOwn === 1 ? db.all<KeyRow>(ownerSql, { keyId: secret.keyId, now }).map(toKey) : [];
      return { ...secret, isAccepted: isAccepted === 1, ...(owner !== undefined && { owner }) };
    }),
  };
}

const ownerSql = `SELECT ${keyColumns} FROM keys AS k WHERE k.id = @keyId`;

function keep(db: Connection, { declaration, id, isNew, removedPlaces }: DeclaredKey, now: number): void {
  const { name, mode, scopes, declaredIn, expiresAt, hash, rules, whitelist } = declaration;
  const fields = { id, mode, scopes: JSON.stringify(scopes), declaredIn, expiresAt };
  if (isNew) {
    db.run(
      `INSERT INTO keys (id, name, mode, scopes, created_at, expires_at, declared_in)
       VALUES (@id, @name, @mode, @scopes, @now, @expiresAt, @declaredIn)`,
      { ...fields, name, now },
    );
  } else {
    db.run(
      `UPDATE keys SET mode = @mode, scopes = @scopes, expires_at = @expiresAt, declared_in = @declaredIn, revoked_at = NULL
       WHERE id = @id`,
      fields,
    );
  }
  setRules(db, id, exactly(rules));
  keepSecret(db, { keyId: id, hash, now });
  for (const placeId of whitelist.placeIds) {
    db.run(
      `INSERT INTO whitelist (key_id, place_id, active, note, added_at, declared_in)
       VALUES (@id, @placeId, 1, '', @now, @declaredIn)
       ON CONFLICT DO UPDATE SET active = 1, declared_in = @declaredIn`,
      { id, placeId, now, declaredIn: whitelist.declaredIn },
    );
  }
  for (const placeId of removedPlaces)
    db.run('DELETE FROM whitelist WHERE key_id = @id AND place_id = @placeId', { id, placeId });
}

/** This secret alone, or none, is accepted from now on; it may have been that of another declared key. */
function keepSecret(
  db: Connection,
  { keyId, hash, now }: { keyId: string; hash: string | undefined; now: number },
): void {
  db.run(
    `UPDATE key_secrets SET replaced_at = coalesce(replaced_at, @now), expires_at = @now
     WHERE key_id = @keyId AND (@hash IS NULL OR hash <> unhex(@hash)) AND (expires_at IS NULL OR expires_at > @now)`,
    { keyId, hash, now },
  );
  if (hash === undefined) return;
  const moved = db.run(
    'UPDATE key_secrets SET key_id = @keyId, replaced_at = NULL, expires_at = NULL WHERE hash = unhex(@hash)',
    { keyId, hash },
  );
  if (moved === 0) addSecret(db, { keyId, secret: { hash, masked: `sha256:${hash.slice(0, 8)}…` }, now });
}
