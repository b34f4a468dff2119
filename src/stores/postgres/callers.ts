import { type Caller, noPlace } from '../../core/access.ts';
import type { KeyRecord, Plan } from '../../core/model.ts';
import type { Database, Reader } from './engine/database.ts';
import { type KeyRow, keyColumns, toKey } from './key-row.ts';

/** The store's facts about a secret's key, in any state, with the version of access at the same moment. */
export async function lookUpKey(
  db: Database,
  query: { hash: string; placeId: number; now: number },
): Promise<{ record: KeyRecord | undefined; version: number; sessionId: number }> {
  const { rows, sessionId } = await db.ask<VersionedRow>(bySecretSql, query);
  const [{ secretId, version, ...row } = noRow] = rows;
  const record =
    secretId === null ? undefined : { ...toCaller(row as CallerRow, query.placeId), secretId: String(secretId) };
  return { record, version, sessionId };
}

type VersionedRow = { version: number } & (({ secretId: number } & CallerRow) | { secretId: null });
const noRow: VersionedRow = { version: 0, secretId: null };

/** A number that rises with each change of keys, secrets, places and the workspace, and which connection told it. */
export async function accessVersion(db: Database): Promise<{ version: number; sessionId: number }> {
  const { rows, sessionId } = await db.ask<{ version: number }>('SELECT version FROM rankd.access_version');
  return { version: rows[0]?.version ?? 0, sessionId };
}

/** The same of a key by its id. `secretId` names the secret that it was presented with. */
export async function findCaller(
  db: Reader,
  {
    secretId = '0',
    placeId = noPlace,
    ...key
  }: { keyId: string; placeId: number | undefined; secretId: string | undefined; now: number },
): Promise<Caller | undefined> {
  const row = await db.get<CallerRow>(byIdSql, { ...key, placeId, secretId: Number(secretId) });
  return row && toCaller(row, placeId);
}

function toCaller(row: CallerRow, placeId: number): Caller {
  const { workspaceId, workspaceName, plan, active, workspaceCreatedAt, ...rest } = row;
  const { replacedAt, acceptedUntil, entryActive, entryNote, entryAddedAt, ...key } = rest;
  return {
    workspace: { id: workspaceId, name: workspaceName, plan, active, createdAt: workspaceCreatedAt },
    key: toKey(key),
    ...(replacedAt !== null && acceptedUntil !== null && { retiring: { since: replacedAt, until: acceptedUntil } }),
    ...(entryNote !== null &&
      entryAddedAt !== null && {
        entry: { keyId: key.id, placeId, active: entryActive === true, note: entryNote, addedAt: entryAddedAt },
      }),
  };
}

interface CallerRow extends KeyRow {
  workspaceId: string;
  workspaceName: string;
  plan: Plan;
  active: boolean;
  workspaceCreatedAt: number;
  replacedAt: number | null;
  acceptedUntil: number | null;
  entryActive: boolean | null;
  entryNote: string | null;
  entryAddedAt: number | null;
}

const callerColumns = `${keyColumns},
         w.id AS "workspaceId", w.name AS "workspaceName", w.plan, w.active, w.created_at AS "workspaceCreatedAt",
         secret.replaced_at AS "replacedAt", secret.expires_at AS "acceptedUntil",
         e.active AS "entryActive", e.note AS "entryNote", e.added_at AS "entryAddedAt"`;

/** The version of access comes along also if there is no such secret. */
const bySecretSql = `
  SELECT secret.seq AS "secretId", v.version, ${callerColumns}
  FROM rankd.access_version AS v
  CROSS JOIN rankd.workspace AS w
  LEFT JOIN rankd.key_secrets AS secret ON secret.hash = decode(@hash, 'hex')
  LEFT JOIN rankd.keys AS k ON k.id = secret.key_id
  LEFT JOIN rankd.whitelist AS e ON e.key_id = k.id AND e.place_id = @placeId`;

const byIdSql = `
  SELECT ${callerColumns}
  FROM rankd.keys AS k
  CROSS JOIN rankd.workspace AS w
  LEFT JOIN rankd.whitelist AS e ON e.key_id = k.id AND e.place_id = @placeId
  LEFT JOIN rankd.key_secrets AS secret ON secret.key_id = k.id AND secret.seq = @secretId
  WHERE k.id = @keyId`;
