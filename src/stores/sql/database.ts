import type { ChainLink } from '../../core/audit.ts';
import type { NodeDeclarations } from '../../core/declarations.ts';

/**
 * A database as the parts of the store use it, which are written once for all engines. Statements name their values: `{ keyId }` is
 * `@keyId`. Every failure is thrown as a RankdError.
 */
export interface Database extends Reader {
  /** Several reads of one state of the database. */
  read<T>(work: (reader: Reader) => Promise<T>): Promise<T>;
  /**
   * Commits all of `work` or nothing of it, and resolves once it is durable. No two writes interleave, on any node: what `work` reads
   * holds until the commit. It may run more than once, and waits for nothing but its transaction.
   */
  write<T>(work: (transaction: WriteTransaction) => Promise<T>): Promise<T>;
  /**
   * One statement that is a transaction by itself, for data that is not audited. It may run next to `write`. Resolves with the rows it
   * returns.
   */
  work<Row extends object>(sql: string, bindings?: Bindings): Promise<Row[]>;
}

/** Reads, within a transaction and outside of one. An engine sends the statements of one turn together. */
export interface Reader {
  readonly sql: Dialect;
  get<Row extends object>(sql: string, bindings?: Bindings): Promise<Row | undefined>;
  all<Row extends object>(sql: string, bindings?: Bindings): Promise<Row[]>;
}

export interface Transaction extends Reader {
  /** Runs a statement whose result no caller needs. If it fails, the transaction fails. */
  run(sql: string, bindings?: Bindings): void;
  /** Returns how many rows were changed. */
  count(sql: string, bindings?: Bindings): Promise<number>;
}

export interface WriteTransaction extends Transaction {
  /** The audit's newest event, those of this transaction included. */
  head(): Promise<ChainLink>;
  /** To be called with each event that was added. */
  moveHead(head: ChainLink): void;
}

/** A missing value is NULL. A list is bound as a list only for `anyOf`. */
export type Bindings = { readonly [name: string]: unknown };

/** SQL that differs between the engines. */
export interface Dialect {
  /** The schema with rankd's tables. */
  readonly schema: string;
  /** Whether `column` is one of a list, which is a parameter. */
  anyOf(column: string, list: string): string;
  /** Whether `column` is one of the rows of a query. */
  anyIn(column: string, query: string): string;
  /** Whether `column` begins with a parameter, in any case. */
  startsWith(column: string, parameter: string): string;
  /** Whether `column` is a parameter, in any case. */
  sameText(column: string, parameter: string): string;
  /** A column of text in the order of its bytes. */
  byBytes(column: string): string;
  greatest(one: string, other: string): string;
  least(one: string, other: string): string;
  /** Bytes as hex, and hex as bytes. */
  hexOf(column: string): string;
  bytesOf(hex: string): string;
  /** An aggregate: rows as the text of a JSON list, which `parse` reads. */
  jsonRows(fields: Readonly<Record<string, string>>, orderBy: string): string;
  parse(json: string): unknown;
  /** The text of a field in a column of JSON. */
  jsonField(column: string, ...path: string[]): string;
  /** A column, by which the engine does not choose an index. */
  unindexed(column: string): string;
  /** Selects the `id` and `hash` of the newest event ever written. */
  readonly chainEnd: string;
  /** Ends a query whose row this transaction is about to change. */
  readonly forUpdate: string;
  /** Whether the node that an expression names has ended. It counts as alive until that is known. */
  hasEnded(node: string): string;
}

/** The node of a handle. */
export interface OwnNode {
  /** Its id, which begins with the first call. Throws `store_unavailable` if it may not work now. */
  id(): Promise<string>;
  /** The same; `undefined` if it has not begun. */
  readonly idIfBegun: string | undefined;
  /** True if it may work on the changes that it holds. */
  readonly hasLease: boolean;
  /** Like `ChangeStore.leaseLeft`. */
  leaseLeft(): () => number;
}

/** The declarations of all nodes, from their configurations. `undefined` if only one daemon works on the store. */
export type DeclarationsOf =
  | (<Declaration>(kind: 'keys' | 'webhooks') => Promise<Declarations<Declaration>>)
  | undefined;

export interface Declarations<Declaration> {
  find(db: Reader): Promise<NodeDeclarations<Declaration>>;
  /** Stores the declarations of this node, which apply from now on. */
  store(
    transaction: Transaction,
    change: { renewed: ReadonlyArray<{ name: string }>; dropped: readonly string[] },
  ): void;
}

/** The declarations of a single daemon. */
export const noDeclarations = { kept: [], elsewhere: [] };
