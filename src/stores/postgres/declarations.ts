import type { DeclarationsOf, Reader, Transaction } from '../sql/database.ts';
import type { Nodes } from './nodes.ts';

const tables = { keys: 'rankd.declarations', webhooks: 'rankd.webhook_declarations' };

/** Returns functions that store this node's declarations and read those of all live nodes. */
export function declarationsOf(nodes: Pick<Nodes, 'id'>): NonNullable<DeclarationsOf> {
  return async <Declaration>(kind: keyof typeof tables) => {
    const node = await nodes.id();
    const table = tables[kind];
    return {
      async find(db: Reader) {
        const rows = await db.all<{ seq: number; isMine: boolean; node: string; definition: string }>(
          `SELECT d.seq, d.node = @node AS "isMine", coalesce(n.name, n.id) AS node, d.definition
           FROM ${table} AS d JOIN rankd.nodes AS n ON n.id = d.node WHERE n.ended_by IS NULL ORDER BY n.name, d.seq`,
          { node },
        );
        const all = rows.map(({ definition, ...rest }) => ({
          ...{ ...rest, declaration: JSON.parse(definition) as Declaration },
        }));
        return { stored: all.filter(({ isMine }) => isMine), elsewhere: all.filter(({ isMine }) => !isMine) };
      },

      store(
        transaction: Transaction,
        { renewed, dropped }: { renewed: ReadonlyArray<{ name: string }>; dropped: readonly string[] },
      ) {
        const replaced = [...dropped, ...renewed.map(({ name }) => name)];
        transaction.run(`DELETE FROM ${table} WHERE node = @node AND name = ANY(@replaced)`, { node, replaced });
        for (const declaration of renewed)
          transaction.run(`INSERT INTO ${table} (node, name, definition) VALUES (@node, @name, @definition)`, {
            ...{ node, name: declaration.name, definition: JSON.stringify(declaration) },
          });
      },
    };
  };
}
