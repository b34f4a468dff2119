import type { ServerAddress } from '../../base/net.ts';
import { thisSystem } from '../../base/system.ts';

/**
 * The command to dump all of rankd's data in a database. No line here has a password: PostgreSQL's tools ask for it.
 * None has `rankd --` in it either, which would look like a command of rankd.
 */
export function dumpLine(address: ServerAddress): string {
  return `pg_dump --format=custom --no-unlogged-table-data --file=rankd.dump --schema=rankd ${urlOf(address)}`;
}

/** The command to restore the dump into a database without rankd's schema. */
export function restoreLine(address: ServerAddress): string {
  return `pg_restore --exit-on-error --single-transaction --dbname=${urlOf(address)} rankd.dump`;
}

/** As PostgreSQL's tools read it, and as a word of the shell. */
function urlOf({ host, port, database, user }: ServerAddress): string {
  const place = host.includes(':') ? `[${host}]` : encodeURIComponent(host);
  return thisSystem.quote(`postgres://${encodeURIComponent(user)}@${place}:${port}/${encodeURIComponent(database)}`);
}
