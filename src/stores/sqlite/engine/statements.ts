import type Database from 'better-sqlite3';
import type { Bindings, Dialect } from '../../sql/database.ts';

export type Value = string | number | Uint8Array | null;
/** The values of a statement's parameters, in order. */
export type Values = Value[];

interface ParsedStatement {
  text: string;
  parameters: string[];
}

const parsed = new Map<string, ParsedStatement>();

/**
 * Replaces each `@name` with `+?`. The unary plus hides the value from the query planner: without it, SQLite would
 * recompile the statement whenever a bound value could change its plan (https://sqlite.org/c3ref/prepare.html), which
 * takes longer than most lookups. better-sqlite3 does not expose SQLITE_DBCONFIG_ENABLE_QPSG, the setting that prevents
 * this. rankd's SQL contains `@` only in parameters.
 */
function statementOf(sql: string): ParsedStatement {
  let statement = parsed.get(sql);
  if (statement === undefined) {
    const parameters = [...sql.matchAll(/@(\w+)/g)].map(([, name]) => String(name));
    statement = { text: sql.replace(/@\w+/g, '+?'), parameters };
    parsed.set(sql, statement);
  }
  return statement;
}

/** Returns a statement's parameter values in a form that SQLite accepts: a list becomes JSON. */
export function valuesOf(sql: string, bindings: Bindings): Values {
  return statementOf(sql).parameters.map((name) => toValue(bindings[name]));
}

function toValue(value: unknown): Value {
  if (value === undefined || value === null) return null;
  if (typeof value === 'boolean') return Number(value);
  return Array.isArray(value) ? JSON.stringify(value) : (value as Value);
}

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
  // A range can use an index. Its upper end is above every name with the prefix: U+10FFFF is the last character.
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

export const hasEndedFunction = 'node_has_ended';
