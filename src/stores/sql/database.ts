import type { ChainLink } from '../../core/audit.ts';
import type { NodeDeclarations } from '../../core/declarations.ts';

/**
 * A database in any engine, for the parts of the store that all engines share. A statement's parameter `@keyId` is
 * bound to the value of `{ keyId }`. All errors are RankdErrors.
 */
export interface Database extends Reader {
  /** Runs several reads on one snapshot of the database. */
  read<T>(work: (reader: Reader) => Promise<T>): Promise<T>;
  /**
   * Commits all statements of the callback or none, and resolves once the commit is durable. Only one `write` runs at a
   * time, on all nodes together, so the data that the callback reads can only change through `Database.work` before the
   * commit. The callback may run more than once, and must await nothing but its transaction.
   */
  write<T>(work: (transaction: WriteTransaction) => Promise<T>): Promise<T>;
  /**
   * Runs one statement as a separate transaction, for data that is not audited. It can run at the same time as a
   * `write`. Resolves with the returned rows.
   */
  work<Row extends object>(sql: string, bindings?: Bindings): Promise<Row[]>;
}

/** Reads inside or outside a transaction. An engine can send the statements of one turn of the event loop together. */
export interface Reader {
  readonly sql: Dialect;
  get<Row extends object>(sql: string, bindings?: Bindings): Promise<Row | undefined>;
  all<Row extends object>(sql: string, bindings?: Bindings): Promise<Row[]>;
}

export interface Transaction extends Reader {
  /** Runs a statement without a result. If it fails, the transaction fails. */
  run(sql: string, bindings?: Bindings): void;
  /** Runs a statement. Resolves with the number of changed rows. */
  count(sql: string, bindings?: Bindings): Promise<number>;
}

export interface WriteTransaction extends Transaction {
  /** Returns the link of the newest audit event, including events of this transaction. */
  head(): Promise<ChainLink>;
  /** Makes this audit event, which the transaction has just added, the head. */
  moveHead(head: ChainLink): void;
}

/** The values of a statement's parameters. A missing value is NULL. Only `anyOf` takes a list. */
export type Bindings = { readonly [name: string]: unknown };

/** The SQL that differs between the engines. Each function except `parse` returns an SQL expression or clause. */
export interface Dialect {
  /** The schema with rankd's tables. */
  readonly schema: string;
  /** True if the column is in the list. */
  anyOf(column: string, list: string): string;
  /** True if the column is in the result of the query. */
  anyIn(column: string, query: string): string;
  /** True if the column starts with the parameter, ignoring case. */
  startsWith(column: string, parameter: string): string;
  /** True if the column equals the parameter, ignoring case. */
  sameText(column: string, parameter: string): string;
  /** Orders a text column by its bytes. */
  byBytes(column: string): string;
  greatest(one: string, other: string): string;
  least(one: string, other: string): string;
  hexOf(column: string): string;
  bytesOf(hex: string): string;
  /** Aggregates rows into a JSON list, which `parse` reads. */
  jsonRows(fields: Readonly<Record<string, string>>, orderBy: string): string;
  parse(json: string): unknown;
  /** Returns the text of a field in a JSON column. */
  jsonField(column: string, ...path: string[]): string;
  /** Prevents SQLite from using an index for the column. Has no effect in PostgreSQL. */
  unindexed(column: string): string;
  /** Selects the `id` and `hash` of the newest event ever written. */
  readonly chainEnd: string;
  /** The clause that ends a query for a row that the transaction will change. */
  readonly forUpdate: string;
  /** True if the node is known to have ended. */
  hasEnded(node: string): string;
}

/** The node of a store handle. */
export interface OwnNode {
  /** Returns the node's id, and starts the node first if necessary. Throws `store_unavailable` if it has no lease. */
  id(): Promise<string>;
  /** The node's id; `undefined` if it has not started or has ended. */
  readonly idIfBegun: string | undefined;
  /** True if the node may write to the platform for the changes that it holds. */
  readonly hasLease: boolean;
  /** Implements `ChangeStore.leaseLeft`. */
  leaseLeft(): () => number;
}

/** Returns access to the declarations of all live nodes. `undefined` if only one daemon can use the store. */
export type DeclarationsOf =
  | (<Declaration>(kind: 'keys' | 'webhooks') => Promise<Declarations<Declaration>>)
  | undefined;

export interface Declarations<Declaration> {
  find(db: Reader): Promise<NodeDeclarations<Declaration>>;
  /** Stores this node's changed declarations. */
  store(
    transaction: Transaction,
    change: { renewed: ReadonlyArray<{ name: string }>; dropped: readonly string[] },
  ): void;
}

/** The node declarations of a store that only one daemon can use. */
export const noDeclarations = { stored: [], elsewhere: [] };
