import { type Caller, noPlace } from '../../core/access.ts';
import type { KeyRecord, Plan } from '../../core/model.ts';
import type { Dialect, Reader } from './database.ts';
import { type KeyRow, keyColumns, toKey } from './keys.ts';
import { perEngine } from './rows.ts';

/**
 * Finds a key by its id, whatever its state, together with the workspace and the key's whitelist entry for the place.
 * `secretId` identifies the secret that the request used.
 */
export async function findCaller(
  db: Reader,
  {
    secretId = '0',
    placeId = noPlace,
    ...key
  }: { keyId: string; placeId: number | undefined; secretId: string | undefined; now: number },
): Promise<Caller | undefined> {
  const row = await db.get<CallerRow>(selectCaller(db.sql), { ...key, placeId, secretId: Number(secretId) });
  return row && toCaller(row, placeId, db.sql);
}

const selectCaller = perEngine(
  (sql) => `
  SELECT ${callerColumns(sql)}
  FROM ${sql.schema}.keys AS k
  CROSS JOIN ${sql.schema}.workspace AS w
  LEFT JOIN ${sql.schema}.whitelist AS e ON e.key_id = k.id AND e.place_id = @placeId
  LEFT JOIN ${sql.schema}.key_secrets AS secret ON secret.key_id = k.id AND secret.seq = @secretId
  WHERE k.id = @keyId`,
);

/**
 * Returns the select list of a `RecordRow`. The query must alias its tables as `key_secrets AS secret`, `keys AS k`,
 * `workspace AS w` and `whitelist AS e`.
 */
export function recordColumns(sql: Dialect): string {
  return `secret.seq AS "secretId", ${callerColumns(sql)}`;
}

export function toRecord({ secretId, ...row }: RecordRow, placeId: number, sql: Dialect): KeyRecord {
  return { ...toCaller(row, placeId, sql), secretId: String(secretId) };
}

export type RecordRow = CallerRow & { secretId: number };

function toCaller(row: CallerRow, placeId: number, sql: Dialect): Caller {
  const { workspaceId, workspaceName, plan, active, workspaceCreatedAt, ...rest } = row;
  const { replacedAt, acceptedUntil, entryActive, entryNote, entryAddedAt, ...key } = rest;
  return {
    workspace: { id: workspaceId, name: workspaceName, plan, active: Boolean(active), createdAt: workspaceCreatedAt },
    key: toKey(key, sql),
    ...(replacedAt !== null && acceptedUntil !== null && { retiring: { since: replacedAt, until: acceptedUntil } }),
    ...(entryNote !== null &&
      entryAddedAt !== null && {
        entry: { keyId: key.id, placeId, active: Boolean(entryActive), note: entryNote, addedAt: entryAddedAt },
      }),
  };
}

interface CallerRow extends KeyRow {
  workspaceId: string;
  workspaceName: string;
  plan: Plan;
  active: boolean | number;
  workspaceCreatedAt: number;
  replacedAt: number | null;
  acceptedUntil: number | null;
  entryActive: boolean | number | null;
  entryNote: string | null;
  entryAddedAt: number | null;
}

function callerColumns(sql: Dialect): string {
  return `${keyColumns(sql)},
    w.id AS "workspaceId", w.name AS "workspaceName", w.plan, w.active, w.created_at AS "workspaceCreatedAt",
    secret.replaced_at AS "replacedAt", secret.expires_at AS "acceptedUntil",
    e.active AS "entryActive", e.note AS "entryNote", e.added_at AS "entryAddedAt"`;
}
