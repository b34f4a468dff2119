import type { Key, KeyDeclaration, KeyRules } from '../../core/model.ts';
import type { Clock, DeclarationClash, KeyStore, NewDeclaration } from '../../ports/index.ts';
import { appendEvent } from './audit.ts';
import type { Connection } from './engine/connection.ts';
import { type KeyRow, keyColumns, toKey } from './key-row.ts';
import { ruleNames, setRules } from './key-rules.ts';
import { addSecret, requireKey } from './keys.ts';

interface Doing {
  by: string;
  now: number;
}

/** The keys of the configuration, brought into the store: every look-up, history and audit works with them as with all others. */
export function declaredKeyStore(db: Connection, clock: Pick<Clock, 'now'>): Pick<KeyStore, 'declareKeys'> {
  return {
    async declareKeys(declared, by) {
      const doing = { by, now: clock.now() };
      return db.write(() => {
        const clashes = declared.flatMap((declaration, index) => clashesOf(db, declaration, { index, now: doing.now }));
        if (clashes.length > 0) return clashes;
        for (const declaration of declared) declare(db, declaration, doing);
        endAllBut(db, new Set(declared.map(({ name }) => name)), doing);
        return [];
      });
    },
  };
}

function clashesOf(
  db: Connection,
  { name, hash }: KeyDeclaration,
  { index, now }: { index: number; now: number },
): DeclarationClash[] {
  const byName = db.get<KeyRow>(
    `SELECT ${keyColumns} FROM keys AS k WHERE k.name = @name AND k.revoked_at IS NULL AND k.declared_in IS NULL`,
    { name, now },
  );
  const byHash = db.get<KeyRow>(
    `SELECT ${keyColumns} FROM key_secrets AS p JOIN keys AS k ON k.id = p.key_id
     WHERE p.hash = unhex(@hash) AND k.declared_in IS NULL`,
    { hash, now },
  );
  return [
    ...(byName === undefined ? [] : [{ index, field: 'name' as const, key: toKey(byName) }]),
    ...(byHash === undefined ? [] : [{ index, field: 'hash' as const, key: toKey(byHash) }]),
  ];
}

function declare(db: Connection, declaration: NewDeclaration, { by, now }: Doing): void {
  const { name, mode, scopes, declaredIn, expiresAt } = declaration;
  const before = findDeclared(db, name, now);
  const id = before?.id ?? declaration.id;
  const fields = { id, mode, scopes: JSON.stringify(scopes), declaredIn, expiresAt };
  if (before === undefined) {
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
  setRules(db, { ...before, id }, allRules(declaration.rules));
  const isNewSecret = declareSecret(db, { keyId: id, hash: declaration.hash, now });
  const after = requireKey(db, id, now);
  if (before === undefined || isNewSecret || definition(before) !== definition(after)) {
    const detail = { name, mode, scopes, ...declaration.rules, expiresAt, declaredIn, isNewSecret };
    appendEvent(db, { at: now, by, action: 'key.declare', subject: id, detail });
  }
  declarePlaces(db, { keyId: id, ...declaration.whitelist }, { by, now });
}

/** The newest key of this name that is or was declared. */
function findDeclared(db: Connection, name: string, now: number): Key | undefined {
  const row = db.get<KeyRow>(
    `SELECT ${keyColumns} FROM keys AS k WHERE k.name = @name AND k.declared_in IS NOT NULL ORDER BY k.seq DESC LIMIT 1`,
    { name, now },
  );
  return row && toKey(row);
}

/** Everything that a declaration decides, to tell whether it is different; where it stands in the file is not part of it. */
function definition({ mode, scopes, expiresAt, revokedAt, ...key }: Key): string {
  return JSON.stringify([mode, scopes, expiresAt, revokedAt, ruleNames.map((rule) => key[rule])]);
}

function allRules(rules: KeyRules) {
  return { ...Object.fromEntries(ruleNames.map((rule) => [rule, null])), ...rules };
}

/** This secret alone is accepted from now on; it may have been that of another declared key. True where it was not before. */
function declareSecret(db: Connection, { keyId, hash, now }: { keyId: string; hash: string; now: number }): boolean {
  db.run(
    `UPDATE key_secrets SET replaced_at = coalesce(replaced_at, @now), expires_at = @now
     WHERE key_id = @keyId AND hash <> unhex(@hash) AND (expires_at IS NULL OR expires_at > @now)`,
    { keyId, hash, now },
  );
  const current = db.get<{ keyId: string; expiresAt: number | null }>(
    'SELECT key_id AS keyId, expires_at AS expiresAt FROM key_secrets WHERE hash = unhex(@hash)',
    { hash },
  );
  if (current === undefined) {
    addSecret(db, { keyId, secret: { hash, masked: `sha256:${hash.slice(0, 8)}…` }, now });
    return true;
  }
  db.run('UPDATE key_secrets SET key_id = @keyId, replaced_at = NULL, expires_at = NULL WHERE hash = unhex(@hash)', {
    keyId,
    hash,
  });
  return current.keyId !== keyId || current.expiresAt !== null;
}

function declarePlaces(
  db: Connection,
  { keyId, placeIds, declaredIn }: { keyId: string; placeIds: number[]; declaredIn: string },
  { by, now }: Doing,
): void {
  const rows = db.all<{ placeId: number }>(
    'SELECT place_id AS placeId FROM whitelist WHERE key_id = @keyId AND declared_in IS NOT NULL',
    { keyId },
  );
  const before = new Set(rows.map(({ placeId }) => placeId));
  const event = { at: now, by, detail: { keyId, declaredIn } };
  for (const placeId of placeIds) {
    db.run(
      `INSERT INTO whitelist (key_id, place_id, active, note, added_at, declared_in)
       VALUES (@keyId, @placeId, 1, '', @now, @declaredIn)
       ON CONFLICT DO UPDATE SET active = 1, declared_in = @declaredIn`,
      { keyId, placeId, now, declaredIn },
    );
    if (!before.delete(placeId)) appendEvent(db, { ...event, action: 'whitelist.add', subject: String(placeId) });
  }
  for (const placeId of before) {
    db.run('DELETE FROM whitelist WHERE key_id = @keyId AND place_id = @placeId', { keyId, placeId });
    appendEvent(db, { ...event, action: 'whitelist.remove', subject: String(placeId) });
  }
}

/** Revokes the keys that were declared and are no more. */
function endAllBut(db: Connection, names: ReadonlySet<string>, { by, now }: Doing): void {
  const declared = db.all<{ id: string; name: string }>(
    'SELECT id, name FROM keys WHERE declared_in IS NOT NULL AND revoked_at IS NULL',
  );
  for (const { id } of declared.filter(({ name }) => !names.has(name))) {
    db.run('UPDATE keys SET revoked_at = @now WHERE id = @id', { id, now });
    const detail = { reason: 'no longer declared' };
    appendEvent(db, { at: now, by, action: 'key.revoke', subject: id, detail });
  }
}
