import type Database from 'better-sqlite3';

/** Values by name: `{ keyId }` is `@keyId` in the statement. */
export type Bindings = Record<string, string | number | Buffer | null | undefined>;

/** The prepared statements of a database. Each is prepared once and found again by its text. */
export class Statements {
  readonly #database: Database.Database;
  readonly #prepared = new Map<string, Database.Statement<[Bindings]>>();

  constructor(database: Database.Database) {
    this.#database = database;
  }

  prepare(sql: string): Database.Statement<[Bindings]> {
    let statement = this.#prepared.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare<Bindings>(withStablePlan(sql));
      this.#prepared.set(sql, statement);
    }
    return statement;
  }
}

/**
 * Keeps bound values out of the choice of a query plan. Otherwise SQLite compiles a statement again whenever a value that could
 * change its plan is bound (https://sqlite.org/c3ref/prepare.html), which takes longer than most look-ups. It has a switch against
 * that, SQLITE_DBCONFIG_ENABLE_QPSG, which better-sqlite3 does not expose. A unary plus before each value does the same. No
 * statement of rankd has an `@` anywhere else.
 */
function withStablePlan(sql: string): string {
  return sql.replace(/@\w+/g, '+$&');
}
