import { type Caller, noPlace } from '../../core/access.ts';
import type { KeyRecord, Plan } from '../../core/model.ts';
import type { Connection } from './engine/connection.ts';
import { type KeyRow, keyColumns, toKey } from './key-row.ts';

/**
 * The store's facts about a secret's key, in any state: the key, its workspace and its whitelist entry for the place. A
 * single statement, because every request pays for it.
 */
export function lookUpKey(
  db: Connection,
  { hash, placeId, now }: { hash: string; placeId: number; now: number },
): KeyRecord | undefined {
  const row = db.get<CallerRow & { secretId: number }>(bySecretSql, { hash, placeId, now });
  if (row === undefined) return undefined;
  const { secretId, ...rest } = row;
  return { ...toCaller(rest, placeId), secretId: String(secretId) };
}

/** The same of a key by its id. `secretId` names the secret that it was presented with. */
export function findCaller(
  db: Connection,
  {
    secretId = '0',
    placeId = noPlace,
    ...key
  }: { keyId: string; placeId: number | undefined; secretId: string | undefined; now: number },
): Caller | undefined {
  const row = db.get<CallerRow>(byIdSql, { ...key, placeId, secretId: Number(secretId) });
  return row && toCaller(row, placeId);
}

function toCaller(row: CallerRow, placeId: number): Caller {
  const { workspaceId, workspaceName, plan, active, workspaceCreatedAt, ...rest } = row;
  const { replacedAt, acceptedUntil, entryActive, entryNote, entryAddedAt, ...key } = rest;
  return {
    workspace: { id: workspaceId, name: workspaceName, plan, active: active === 1, createdAt: workspaceCreatedAt },
    key: toKey(key),
    ...(replacedAt !== null && acceptedUntil !== null && { retiring: { since: replacedAt, until: acceptedUntil } }),
    ...(entryNote !== null &&
      entryAddedAt !== null && {
        entry: { keyId: key.id, placeId, active: entryActive === 1, note: entryNote, addedAt: entryAddedAt },
      }),
  };
}

interface CallerRow extends KeyRow {
  workspaceId: string;
  workspaceName: string;
  plan: Plan;
  active: number;
  workspaceCreatedAt: number;
  replacedAt: number | null;
  acceptedUntil: number | null;
  entryActive: number | null;
  entryNote: string | null;
  entryAddedAt: number | null;
}

const callerColumns = `${keyColumns},
         w.id AS workspaceId, w.name AS workspaceName, w.plan, w.active, w.created_at AS workspaceCreatedAt,
         secret.replaced_at AS replacedAt, secret.expires_at AS acceptedUntil,
         e.active AS entryActive, e.note AS entryNote, e.added_at AS entryAddedAt`;

const bySecretSql = `
  SELECT secret.seq AS secretId, ${callerColumns}
  FROM key_secrets AS secret
  JOIN keys AS k ON k.id = secret.key_id
  JOIN workspace AS w
  LEFT JOIN whitelist AS e ON e.key_id = k.id AND e.place_id = @placeId
  WHERE secret.hash = unhex(@hash)`;

const byIdSql = `
  SELECT ${callerColumns}
  FROM keys AS k
  JOIN workspace AS w
  LEFT JOIN whitelist AS e ON e.key_id = k.id AND e.place_id = @placeId
  LEFT JOIN key_secrets AS secret ON secret.key_id = k.id AND secret.seq = @secretId
  WHERE k.id = @keyId`;
