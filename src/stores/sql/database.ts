import type { ChainLink } from '../../core/audit.ts';
import type { NodeDeclarations } from '../../core/declarations.ts';

/**
 * The database interface for the store code shared by both engines. A statement's parameter `@keyId` is bound to the
 * value of `{ keyId }`. All errors are RankdErrors.
 */
export interface Database extends Reader {
  /** Runs several reads on a single snapshot of the database. */
  read<T>(work: (reader: Reader) => Promise<T>): Promise<T>;
  /**
   * Commits all or none of the callback's statements, and resolves once the commit is durable. Only one `write` runs at
   * a time across all nodes, so until the commit, only `Database.work` can change the data that the callback reads. The
   * callback may run more than once, and must await nothing but its transaction.
   */
  write<T>(work: (transaction: WriteTransaction) => Promise<T>): Promise<T>;
  /**
   * Runs one statement atomically, for data that is not audited, and resolves with its rows. With PostgreSQL, runs it
   * in a separate transaction, which can be concurrent with a `write`.
   */
  work<Row extends object>(sql: string, bindings?: Bindings): Promise<Row[]>;
}

/** Reads inside or outside a transaction. An engine can batch the statements of one event-loop turn. */
export interface Reader {
  readonly sql: Dialect;
  get<Row extends object>(sql: string, bindings?: Bindings): Promise<Row | undefined>;
  all<Row extends object>(sql: string, bindings?: Bindings): Promise<Row[]>;
}

export interface Transaction extends Reader {
  /** Runs a statement without waiting for it. If it fails, the transaction fails. */
  run(sql: string, bindings?: Bindings): void;
  /** Runs a statement. Resolves with the number of rows that it changed. */
  count(sql: string, bindings?: Bindings): Promise<number>;
}

export interface WriteTransaction extends Transaction {
  /** Resolves with the link of the newest audit event, including events added by this transaction. */
  head(): Promise<ChainLink>;
  /** Sets the head to the audit event that the transaction has just added. */
  moveHead(head: ChainLink): void;
}

/**
 * The values of a statement's parameters. A missing value is NULL. In the SQL that both engines share, only `anyOf`
 * takes a list.
 */
export type Bindings = { readonly [name: string]: unknown };

/** The SQL that differs between the engines. Each function except `parse` returns an SQL expression or clause. */
export interface Dialect {
  readonly schema: string;
  anyOf(column: string, list: string): string;
  anyIn(column: string, query: string): string;
  /** True if the column starts with the parameter, ignoring case. */
  startsWith(column: string, parameter: string): string;
  /** True if the column equals the parameter, ignoring case. */
  sameText(column: string, parameter: string): string;
  /** Makes a text column sort by its bytes. */
  byBytes(column: string): string;
  greatest(one: string, other: string): string;
  least(one: string, other: string): string;
  hexOf(column: string): string;
  bytesOf(hex: string): string;
  /** Aggregates rows into a JSON list that `parse` can read. */
  jsonRows(fields: Readonly<Record<string, string>>, orderBy: string): string;
  parse(json: string): unknown;
  /** Extracts a field of a JSON column as text. */
  jsonField(column: string, ...path: string[]): string;
  /** Prevents SQLite from using an index for the column. Has no effect in PostgreSQL. */
  unindexed(column: string): string;
  /** Selects the `id` and `hash` of the newest event ever written. */
  readonly chainEnd: string;
  /** The clause that locks the selected rows for the rest of the transaction; empty if the engine needs none. */
  readonly forUpdate: string;
  /** True if the node is known to have ended. */
  hasEnded(node: string): string;
}

export interface OwnNode {
  /**
   * Resolves with the node's id, registering the node first if necessary. Throws `store_unavailable` if the node has
   * lost its lease.
   */
  id(): Promise<string>;
  /** `undefined` if the node has not been registered yet, or has ended. */
  readonly idIfBegun: string | undefined;
  /** True while the node is allowed to write to the platform for the changes that it holds. */
  readonly hasLease: boolean;
  /** Implements `ChangeStore.leaseLeft`. */
  leaseLeft(): () => number;
}

/** Returns an accessor for the declarations of all live nodes; `undefined` if only one daemon can use the store. */
export type DeclarationsOf =
  | (<Declaration>(kind: 'keys' | 'webhooks') => Promise<Declarations<Declaration>>)
  | undefined;

export interface Declarations<Declaration> {
  find(db: Reader): Promise<NodeDeclarations<Declaration>>;
  store(
    transaction: Transaction,
    change: { renewed: ReadonlyArray<{ name: string }>; dropped: readonly string[] },
  ): void;
}

/** The node declarations of a store that only one daemon can use. */
export const noDeclarations = { stored: [], elsewhere: [] };
