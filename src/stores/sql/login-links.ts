import type { LoginLink, LoginLinkStore } from '../../ports/index.ts';
import type { Database } from './database.ts';
import type { RowOf } from './rows.ts';

/** More links than operators need in the five minutes for which a link is valid. */
const maxLinks = 100;

export function loginLinkStore(db: Database): LoginLinkStore {
  const table = `${db.sql.schema}.login_links`;
  return {
    async storeLoginLink(link, now) {
      await db.write(async (transaction) => {
        transaction.run(
          `DELETE FROM ${table} WHERE expires_at <= @now
           OR hash NOT IN (SELECT hash FROM ${table} ORDER BY expires_at DESC, hash LIMIT @others)`,
          { now, others: maxLinks - 1 },
        );
        transaction.run(
          `INSERT INTO ${table} (hash, made_by, is_view_only, life_ms, expires_at)
           VALUES (@hash, @by, @isViewOnly, @lifeMs, @expiresAt)`,
          { ...link },
        );
      });
    },

    async takeLoginLink(hash, now) {
      return db.write(async (transaction) => {
        const row = await transaction.get<RowOf<LoginLink>>(
          `DELETE FROM ${table} WHERE hash = @hash AND expires_at > @now
           RETURNING made_by AS "by", is_view_only AS "isViewOnly", life_ms AS "lifeMs"`,
          { hash, now },
        );
        return row && { ...row, isViewOnly: Boolean(row.isViewOnly) };
      });
    },

    async dropLoginLinks() {
      await db.write(async (transaction) => {
        transaction.run(`DELETE FROM ${table}`, {});
      });
    },
  };
}
