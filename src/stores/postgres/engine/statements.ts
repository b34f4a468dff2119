import pg from 'pg';
import type { Bindings, Dialect } from '../../sql/database.ts';

/** A statement with numbered parameters, as PostgreSQL requires. Each connection prepares it once, under `name`. */
interface Statement {
  name: string;
  text: string;
  parameters: string[];
}

const parsed = new Map<string, Statement>();

export function statementOf(sql: string): Statement {
  let statement = parsed.get(sql);
  if (statement === undefined) {
    const parameters: string[] = [];
    const text = sql.replace(/@(\w+)/g, (_, name: string) => {
      if (!parameters.includes(name)) parameters.push(name);
      return `$${parameters.indexOf(name) + 1}`;
    });
    statement = { name: `rankd_${parsed.size}`, text, parameters };
    parsed.set(sql, statement);
  }
  return statement;
}

export function valuesOf({ parameters }: Statement, bindings: Bindings): unknown[] {
  return parameters.map((name) => toParameter(bindings[name]));
}

/** Escapes U+0000, which PostgreSQL can't store in text, as U+001A and a digit. Also escapes U+001A itself. */
export function toParameter(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toParameter);
  if (typeof value !== 'string' || !(value.includes('\0') || value.includes('\x1a'))) return value;
  return value.replaceAll('\x1a', '\x1a1').replaceAll('\0', '\x1a0');
}

function fromText(text: string): string {
  return text.includes('\x1a') ? text.replaceAll('\x1a0', '\0').replaceAll('\x1a1', '\x1a') : text;
}

const [int8, text, int8Array, textArray] = [20, 25, 1016, 1009];

export const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === int8) return toNumber;
    if (oid === text) return fromText;
    const parse = pg.types.getTypeParser(oid, format as 'text');
    if (oid === int8Array) return (value: string) => (parse(value) as string[]).map(toNumber);
    if (oid === textArray) return (value: string) => (parse(value) as string[]).map(fromText);
    return parse;
  },
};

function toNumber(value: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError(`${value} is not a safe integer`);
  return number;
}

export const postgresDialect: Dialect = {
  schema: 'rankd',
  anyOf: (column, list) => `${column} = ANY(${list})`,
  anyIn: (column, query) => `${column} = ANY (ARRAY (${query}))`,
  // In LIKE, an unescaped underscore matches any character.
  startsWith: (column, parameter) => `lower(${column}) LIKE replace(lower(${parameter}), '_', '\\_') || '%'`,
  sameText: (column, parameter) => `lower(${column}) = lower(${parameter})`,
  byBytes: (column) => `${column} COLLATE "C"`,
  greatest: (one, other) => `greatest(${one}, ${other})`,
  least: (one, other) => `least(${one}, ${other})`,
  hexOf: (column) => `encode(${column}, 'hex')`,
  bytesOf: (hex) => `decode(${hex}, 'hex')`,
  jsonRows: (fields, orderBy) => {
    const pairs = Object.entries(fields).map(([field, column]) => `'${field}', ${column}`);
    return `coalesce(json_agg(json_build_object(${pairs.join(', ')}) ORDER BY ${orderBy}), '[]')::text`;
  },
  parse: (json) => JSON.parse(json, (_, value) => (typeof value === 'string' ? fromText(value) : value)),
  jsonField: (column, ...path) => `${column}::json #>> '{${path.join(',')}}'`,
  unindexed: (column) => column,
  chainEnd: `SELECT last_id AS id, encode(hash, 'hex') AS hash FROM rankd.audit_head`,
  forUpdate: 'FOR UPDATE',
  hasEnded,
};

/** Returns SQL that is true if the node has ended. A node without a row counts as alive. */
export function hasEnded(node: string): string {
  return `EXISTS (SELECT 1 FROM rankd.nodes WHERE nodes.id = ${node} AND ended_by IS NOT NULL)`;
}
