/** A row in a form that every engine can read and write: yes and no are 1 and 0, a list is JSON, bytes are bytes. */
export type KeptRow = Readonly<Record<string, number | string | Uint8Array | null>>;

/** All that a store keeps, of one moment. */
export interface StoreContents {
  /** The rows of a table in the order of its key, page by page. */
  rows(table: string): AsyncIterable<KeptRow[]>;
  /** The greatest number that a row of each table ever had, also of rows that are gone. */
  numbers(): Promise<ReadonlyMap<string, number>>;
}

/** How many rows of each table were copied, and the newest event of the audit. */
export interface CopiedContents {
  tables: ReadonlyMap<string, number>;
  head: { id: number; hash: string };
}

/** Where rankd's data is copied from, or to. */
export interface CopyPlace {
  /** In words for the operator. It never holds a password. */
  text: string;
  /** Throws `conflict` if a daemon works there. Where there can be a lock, none starts until it is disposed. */
  keepDaemonsAway(): Promise<AsyncDisposable>;
  /** Throws `not_found` if nothing is kept there, and as `StoreOperations` if it is not this rankd's. */
  read<T>(work: (contents: StoreContents) => Promise<T>): Promise<T>;
  /**
   * Makes the database there with the contents, compares it with them, and keeps all of it or nothing. Throws `already_exists` if
   * anything is kept there, and `conflict` if the audit is not whole.
   */
  fill(contents: StoreContents): Promise<CopiedContents>;
}
