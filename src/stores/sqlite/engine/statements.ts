import type Database from 'better-sqlite3';
import type { Bindings, Dialect } from '../../sql/database.ts';

/** A value as SQLite stores it. */
export type Value = string | number | Uint8Array | null;
/** The values of a statement, in its order. */
export type Values = Value[];

interface Known {
  /** The statement as SQLite gets it. */
  text: string;
  parameters: string[];
}

const known = new Map<string, Known>();

/**
 * Prevents bound values from influencing the query plan. Otherwise SQLite compiles a statement again whenever a value that could change its
 * plan is bound (https://sqlite.org/c3ref/prepare.html), which takes longer than most look-ups. SQLite has a switch that prevents this,
 * SQLITE_DBCONFIG_ENABLE_QPSG, which better-sqlite3 does not expose. A unary plus before each value does the same. No statement of rankd
 * has an `@` anywhere else.
 */
function statementOf(sql: string): Known {
  let statement = known.get(sql);
  if (statement === undefined) {
    const parameters = [...sql.matchAll(/@(\w+)/g)].map(([, name]) => String(name));
    statement = { text: sql.replace(/@\w+/g, '+?'), parameters };
    known.set(sql, statement);
  }
  return statement;
}

/** The values that a statement names, as SQLite stores them: a list is JSON. */
export function valuesOf(sql: string, bindings: Bindings): Values {
  return statementOf(sql).parameters.map((name) => toValue(bindings[name]));
}

function toValue(value: unknown): Value {
  if (value === undefined || value === null) return null;
  if (typeof value === 'boolean') return Number(value);
  return Array.isArray(value) ? JSON.stringify(value) : (value as Value);
}

/** The prepared statements of a connection. Each is prepared once and found again by its text. */
export class Statements {
  readonly #database: Database.Database;
  readonly #prepared = new Map<string, Database.Statement<[Values]>>();

  constructor(database: Database.Database) {
    this.#database = database;
  }

  prepare(sql: string): Database.Statement<[Values]> {
    let statement = this.#prepared.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare<[Values]>(statementOf(sql).text);
      this.#prepared.set(sql, statement);
    }
    return statement;
  }
}

export const sqliteDialect: Dialect = {
  schema: 'main',
  anyOf: (column, list) => `${column} IN (SELECT value FROM json_each(${list}))`,
  anyIn: (column, query) => `${column} IN (${query})`,
  // As a range, which an index can find. No name has a character after the last one of Unicode.
  startsWith: (column, parameter) =>
    `(${column} COLLATE NOCASE >= ${parameter} AND ${column} COLLATE NOCASE < ${parameter} || char(0x10ffff))`,
  sameText: (column, parameter) => `${column} = ${parameter} COLLATE NOCASE`,
  byBytes: (column) => column,
  greatest: (one, other) => `max(${one}, ${other})`,
  least: (one, other) => `min(${one}, ${other})`,
  hexOf: (column) => `lower(hex(${column}))`,
  bytesOf: (hex) => `unhex(${hex})`,
  jsonRows: (fields, orderBy) => {
    const pairs = Object.entries(fields).map(([field, column]) => `'${field}', ${column}`);
    return `json_group_array(json_object(${pairs.join(', ')}) ORDER BY ${orderBy})`;
  },
  parse: (json) => JSON.parse(json),
  jsonField: (column, ...path) => `${column} ->> '$.${path.join('.')}'`,
  unindexed: (column) => `+${column}`,
  chainEnd: `
    SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'audit_events'), 0) AS id,
           coalesce((SELECT lower(hex(hash)) FROM audit_events ORDER BY id DESC LIMIT 1),
                    (SELECT lower(hex(hash)) FROM audit_anchor)) AS hash`,
  forUpdate: '',
  hasEnded: (node) => `${hasEndedFunction}(${node})`,
};

/** A function that each connection has: whether no process holds the lock of a node. */
export const hasEndedFunction = 'node_has_ended';
