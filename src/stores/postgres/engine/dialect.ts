import type { Dialect } from '../../sql/database.ts';
import { fromText } from './statement.ts';

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
