import type { Store, StoredRole } from './store.ts';

/** A database engine, bound to the location of rankd's data. */
export interface StoreEngine {
  /**
   * Opens the store, creating or migrating it first if necessary. Throws `conflict` if the data needs a migration, but
   * other nodes are using it or the file system is read-only. Also throws `no_permission`, `config_invalid` (the data
   * does not belong to rankd, or the configured directory or server is unsuitable), `schema_newer` and
   * `store_unavailable`.
   */
  openStore(options?: OpenOptions): Promise<Store>;
  operations: StoreOperations;
  /**
   * Returns the location of the data, for display to the operator. `isServer` is true if the data is on a database
   * server.
   */
  place(): Promise<{ text: string; isServer: boolean }>;
}

export interface OpenOptions {
  /**
   * True for a daemon, which holds the daemon lock. With SQLite, once the disk proves slow, a commit no longer delays
   * other requests.
   */
  isServed?: boolean;
  /** True for a command that only reads, and therefore also works on a read-only file system. */
  isReading?: boolean;
  onNew?: (() => void) | undefined;
  onMigrated?: ((migration: Migration) => void) | undefined;
}

/**
 * An operator's actions on a whole store.
 *
 * Checks, migrations and backups throw `not_found` if there is no database. All methods except `findNames` can throw
 * `config_invalid` (not a rankd database, or an unsuitable server), `schema_newer`, `no_permission` and
 * `store_unavailable`.
 */
export interface StoreOperations {
  exists(): Promise<boolean>;
  /** Checks the database, and reports damage instead of throwing. Only SQLite checks every page. */
  check(): Promise<StoreReport>;
  /** Returns `undefined` if the database is a file. */
  serverFacts(): Promise<ServerFacts | undefined>;
  /** Returns the server's identity, even if it is not the known one; `undefined` if the database is a file. */
  server(): Promise<KnownServer | undefined>;
  /**
   * Migrates the database to the newest schema, even while daemons are using it: a daemon that does not support the new
   * schema finds out through `Store.schemaTooNew`.
   */
  migrate(): Promise<Migration>;
  /** Performs a trial migration, and discards its effects. */
  tryMigration(): Promise<Migration>;
  /**
   * Copies a snapshot of the database to a file, even while other processes use the database, and checks the copy
   * before giving it its final name. Throws `already_exists`, and `usage` if the path is one of rankd's own files, a
   * folder or a special file.
   */
  backUp(target: BackupTarget): Promise<Backup>;
  /** Like `backUp`, but passes the copy to `send` in chunks. */
  streamBackup(send: (chunk: Uint8Array) => Promise<void>): Promise<Backup>;
  /**
   * Summarizes the contents of a backup. Throws `not_found` if there is no such file, and `backup_unusable` if it is
   * not a backup, is damaged, or has a schema that rankd did not create. With PostgreSQL, throws `usage`.
   */
  examineBackup(file: string): Promise<ExaminedBackup>;
  /**
   * Replaces the database with a copy of the backup. The caller must have examined the backup, and must hold the daemon
   * lock. An interruption leaves either the old or the new database intact. Throws `conflict` if another process has
   * the database open, and `usage` if the backup is the database itself or the engine is PostgreSQL.
   */
  restore(request: RestoreRequest): Promise<Restored>;
  /** Returns names for shell completion. Never throws; returns no names if the database can't be read. */
  findNames(query: NamesQuery): Promise<Names>;
  /**
   * Locks the data directory until this process disposes of the lock or exits, so that no other daemon can use the
   * directory. Throws `conflict` if another daemon holds the lock.
   */
  lockDaemon(): Promise<AsyncDisposable>;
  isDaemonRunning(): Promise<boolean>;
}

/** `schema` is `undefined` if it could not be read. */
export interface StoreReport {
  schema: number | undefined;
  /** The newest schema that this version of rankd supports. */
  newestSchema: number;
  checks: StoreCheck[];
  fix: string;
}

export interface StoreCheck {
  name: string;
  ok: boolean;
  detail: string;
}

/**
 * The database cluster at an address, identified by the `system_identifier` that a server shares with its standbys, or
 * by `unreported` if the server does not report it to this user.
 */
export interface KnownServer {
  /** The database address, for display to the operator. */
  place: string;
  /** The cluster that rankd last used; `undefined` if the data directory has no record of one. */
  known: string | undefined;
  found: string;
  /**
   * Records the found cluster as the known one, which a daemon running on the data directory then accepts, too. Adds an
   * event to the audit log, unless the database has no `rankd` schema.
   */
  accept(by: string): Promise<void>;
}

export interface ServerFacts {
  version: string;
  user: string;
  database: string;
  isEncrypted: boolean;
  isOnThisMachine: boolean;
  isPooled: boolean;
  /** The server's `fsync` setting. */
  isSynced: boolean;
  writesFullPages: boolean;
  isCommitSynced: boolean;
  /** Settings of the PostgreSQL server, database or user that rankd overrides in its transactions. */
  overridden: readonly string[];
  /** 0 if the server never closes idle connections. */
  idleSessionTimeoutMs: number;
  /** True if the server proves its identity by a password, a certificate or the owner of its socket. */
  isProven: boolean;
  standbyCount: number;
  /**
   * The number of standbys that a commit can wait for: all of them, or 0 if the server names no synchronous standby.
   */
  synchronousCount: number;
  connections: { most: number; used: number };
  /** The object that the user lacks permission to change: the schema or, if there is no schema yet, the database. */
  lacks: 'schema' | 'database' | undefined;
  /** The server's clock minus this machine's. */
  aheadMs: number;
}

export interface Migration {
  /** The location of the database, for display to the operator. */
  database: string;
  /** The schema versions before and after; equal if there was nothing to do. */
  from: number;
  to: number;
  /**
   * The path of the copy made before the migration or, in a trial, of the copy that a migration would make; null if
   * there is none.
   */
  copy: string | null;
  note?: string;
}

export interface RowCounts {
  keys: number;
  whitelist: number;
  changes: number;
  auditEvents: number;
}

export interface BackupContents {
  schema: number;
  rows: RowCounts;
}

export interface ExaminedBackup extends BackupContents {
  /** True if the backup has a digest and matches it. Without a digest, a changed byte can go undetected. */
  hasDigest: boolean;
}

export interface Backup extends BackupContents {
  bytes: number;
  newestSchema: number;
}

export interface BackupTarget {
  /** An absolute path. Symbolic links are followed only if they belong to root or the owner of the database. */
  file: string;
  mayReplace: boolean;
}

export interface RestoreRequest {
  file: string;
  by: string;
}

export interface Restored {
  /** The path under which the previous database was kept; `undefined` if there was none. */
  kept: string | undefined;
}

export interface NamesQuery {
  /** The leading digits of the place ids. */
  placesLike: string;
  /** The key (id or name) whose places are returned; by default, every key that is not revoked. */
  placesOf?: string | undefined;
  /** A prefix of the users' names, ignoring case. If absent, no users are returned. */
  usersLike?: string;
}

export interface Names {
  /** The keys that are not revoked, sorted by name. */
  keys: Array<{ name: string; mode: string }>;
  places: number[];
  /**
   * The last known roles of the served group or, if rankd serves none yet, of the simulated group, in ascending order
   * of rank.
   */
  roles: StoredRole[];
  users: string[];
}

/** A row in a form that every engine can read and write: booleans as 1 or 0, lists as JSON, bytes as bytes. */
export type StoredRow = Readonly<Record<string, number | string | Uint8Array | null>>;

/** A snapshot of all data in a store. */
export interface StoreContents {
  /** Yields a table's rows in pages, in key order. */
  rows(table: string): AsyncIterable<StoredRow[]>;
  /** Returns the highest row number ever used in each table, even if that row has been removed. */
  numbers(): Promise<ReadonlyMap<string, number>>;
}

/** The number of rows copied from each table, and the newest audit event. */
export interface CopiedContents {
  tables: ReadonlyMap<string, number>;
  head: { id: number; hash: string };
}

/** The source or target of a copy of rankd's data. */
export interface CopyPlace {
  /** The location, for display to the operator, without any password. */
  text: string;
  /**
   * Prevents daemons from starting until the result is disposed of, if the location has a daemon lock. Throws
   * `conflict` if a daemon or, with PostgreSQL, any other rankd process is using the data.
   */
  lockOutDaemons(): Promise<AsyncDisposable>;
  /**
   * Passes a snapshot of the data to `work`. Throws `not_found` if there is no data, `conflict` if its schema is not
   * the newest, and the same errors as `StoreOperations`.
   */
  read<T>(work: (contents: StoreContents) => Promise<T>): Promise<T>;
  /**
   * Creates the database from the contents, and then compares the two. Leaves nothing behind on failure. Throws
   * `already_exists` if there is data already, `usage` if the location is a backup file, and `conflict` if audit events
   * are missing or altered, or if the target has a different schema version.
   */
  fill(contents: StoreContents): Promise<CopiedContents>;
}
