import { counted } from '../../base/text.ts';
import type { Names, NamesQuery, RowCounts, StoreCheck, StoredRole } from '../../ports/index.ts';
import type { Dialect, Reader } from './database.ts';

export const noNames: Names = { keys: [], places: [], roles: [], users: [] };

/** A longer list would not help the operator. */
const maxNames = 200;
/** The number of recent changes to search for user names. */
const maxChanges = 5000;

export async function findNames(db: Reader, { placesLike, placesOf, usersLike }: NamesQuery): Promise<Names> {
  const { schema, byBytes, startsWith } = db.sql;
  const [keys, places, roles, users] = await Promise.all([
    db.all<Names['keys'][number]>(
      `SELECT name, mode FROM ${schema}.keys WHERE revoked_at IS NULL ORDER BY ${byBytes('name')}`,
    ),
    db.all<{ placeId: number }>(
      `SELECT DISTINCT place_id AS "placeId" FROM ${schema}.whitelist JOIN ${schema}.keys ON keys.id = key_id
       WHERE ${startsWith('CAST(place_id AS text)', '@placesLike')}
         AND CASE WHEN CAST(@placesOf AS text) IS NULL THEN revoked_at IS NULL ELSE @placesOf IN (keys.id, name) END
       ORDER BY place_id LIMIT ${maxNames}`,
      { placesLike, placesOf },
    ),
    db.all<StoredRole>(
      `SELECT role_id AS id, name, rank FROM ${schema}.group_roles
       WHERE group_title = (SELECT group_title FROM ${schema}.served_group)
          OR NOT EXISTS (SELECT 1 FROM ${schema}.served_group)
       ORDER BY ${byBytes('group_title')}, rank, role_id`,
    ),
    usersLike === undefined ? [] : db.all<{ name: string }>(usersSql(db.sql), { usersLike }),
  ]);
  return { keys, places: places.map(({ placeId }) => placeId), roles, users: users.map(({ name }) => name) };
}

/** Selects the names that rankd has looked up or that operators have typed. */
function usersSql({ schema, byBytes, startsWith }: Dialect): string {
  return `
    SELECT name FROM (
      SELECT name FROM ${schema}.user_names
      UNION
      SELECT rankee_name FROM (
        SELECT rankee_name, key_id FROM ${schema}.rank_changes ORDER BY seq DESC LIMIT ${maxChanges}) AS newest
      WHERE key_id IS NULL AND rankee_name <> '') AS named
    WHERE ${startsWith('name', '@usersLike')} ORDER BY ${byBytes('name')} LIMIT ${maxNames}`;
}

export function rowCountsSql({ schema }: Dialect): string {
  return `
    SELECT (SELECT count(*) FROM ${schema}.keys) AS keys,
           (SELECT count(*) FROM ${schema}.whitelist) AS whitelist,
           (SELECT count(*) FROM ${schema}.rank_changes) AS changes,
           (SELECT count(*) FROM ${schema}.audit_events) AS "auditEvents"`;
}

export const noRows: RowCounts = { keys: 0, whitelist: 0, changes: 0, auditEvents: 0 };

export function rowsCheck({ keys, whitelist, changes, auditEvents }: RowCounts): StoreCheck {
  const counts = [
    counted(keys, 'key'),
    counted(whitelist, 'whitelisted place'),
    counted(changes, 'change'),
    counted(auditEvents, 'audit event'),
  ];
  return { name: 'rows', ok: true, detail: counts.join(', ') };
}

const maxShown = 3;

export function flawsCheck(name: string, flaws: string[], okDetail: string): StoreCheck {
  if (flaws.length === 0) return { name, ok: true, detail: okDetail };
  const more = flaws.length > maxShown ? [`and ${flaws.length - maxShown} more`] : [];
  return { name, ok: false, detail: [...flaws.slice(0, maxShown), ...more].join('; ') };
}
