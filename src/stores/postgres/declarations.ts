import type { NodeDeclarations } from '../../core/declarations.ts';
import type { Reader, Transaction } from './engine/database.ts';

/** Where nodes keep what they declare: keys, and webhooks. */
export type DeclarationTable = 'declarations' | 'webhook_declarations';

/** The declarations of a node, and of the others that have not ended. */
export async function declarationsOf<Declaration>(
  db: Reader,
  table: DeclarationTable,
  node: string,
): Promise<NodeDeclarations<Declaration>> {
  const rows = await db.all<{ seq: number; isMine: boolean; node: string; definition: string }>(aliveSql(table), {
    node,
  });
  const all = rows.map(({ definition, ...rest }) => ({ ...rest, declaration: JSON.parse(definition) as Declaration }));
  return { kept: all.filter(({ isMine }) => isMine), elsewhere: all.filter(({ isMine }) => !isMine) };
}

const aliveSql = (table: DeclarationTable) => `
  SELECT d.seq, d.node = @node AS "isMine", coalesce(n.name, n.id) AS node, d.definition
  FROM rankd.${table} AS d JOIN rankd.nodes AS n ON n.id = d.node WHERE n.ended_by IS NULL ORDER BY n.name, d.seq`;

/** Keeps what a node declares from now on. */
export function keepDeclarations(
  transaction: Transaction,
  table: DeclarationTable,
  { node, renewed, dropped }: { node: string; renewed: ReadonlyArray<{ name: string }>; dropped: readonly string[] },
): void {
  const replaced = [...dropped, ...renewed.map(({ name }) => name)];
  transaction.run(`DELETE FROM rankd.${table} WHERE node = @node AND name = ANY(@replaced)`, { node, replaced });
  const insert = `INSERT INTO rankd.${table} (node, name, definition) VALUES (@node, @name, @definition)`;
  for (const declaration of renewed)
    transaction.run(insert, { node, name: declaration.name, definition: JSON.stringify(declaration) });
}
