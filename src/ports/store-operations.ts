import type { Store, StoredRole } from './store.ts';

/** A database engine bound to the location of rankd's data. */
export interface StoreEngine {
  /**
   * Opens the store, and creates or migrates it first if necessary. Throws `conflict` if it would have to migrate data
   * that other nodes are using or that is on a read-only file system. Also throws `no_permission`, `config_invalid`
   * (the data does not belong to rankd), `schema_newer` and `store_unavailable`.
   */
  openStore(options?: OpenOptions): Promise<Store>;
  operations: StoreOperations;
  /**
   * Returns the location of the data, as text for the operator. `isServer` is true if other machines can use the same
   * data.
   */
  place(): Promise<{ text: string; isServer: boolean }>;
}

export interface OpenOptions {
  /**
   * True for a daemon, which holds the daemon lock. With SQLite, a write to a slow disk then delays no other requests.
   */
  isServed?: boolean;
  /** True for a command that only reads, so that the database can be on a read-only file system. */
  isReading?: boolean;
  /** Called if the store was created. */
  onNew?: (() => void) | undefined;
  /** Called after an older schema was migrated. */
  onMigrated?: ((migration: Migration) => void) | undefined;
}

/**
 * An operator's actions on a whole store.
 *
 * Checks, migrations and backups throw `not_found` if there is no database. All methods except `findNames` can throw
 * `config_invalid` (not a rankd database), `schema_newer`, `no_permission` and `store_unavailable`.
 */
export interface StoreOperations {
  exists(): Promise<boolean>;
  /** Checks the whole database. Reports damage instead of throwing an error. */
  check(): Promise<StoreReport>;
  /** Returns the server's details, or `undefined` if the database is a file. */
  serverFacts(): Promise<ServerFacts | undefined>;
  /** Returns the server's identity, even if it differs from the known one; `undefined` if the database is a file. */
  server(): Promise<KnownServer | undefined>;
  /**
   * Migrates the database to the newest schema, even while daemons are using it: a daemon that does not support the new
   * schema detects it (`Store.outgrown`). If a migration is necessary and makes no copy of the data, calls `advise`
   * with a recommended precaution.
   */
  migrate(advise?: (advice: string) => void): Promise<Migration>;
  /** Runs `migrate` as a trial, and discards the result. */
  tryMigration(): Promise<Migration>;
  /**
   * Copies a snapshot of the database to a file while others use it, and checks the copy before it gets its name.
   * Throws `already_exists`, and `usage` if the path is one of rankd's own files, a folder or a special file.
   */
  backUp(target: BackupTarget): Promise<Backup>;
  /** Like `backUp`, but passes the copy to `send` in chunks. */
  streamBackup(send: (chunk: Uint8Array) => Promise<void>): Promise<Backup>;
  /**
   * Returns the contents of a backup. Throws `not_found` if there is no such file, and `backup_unusable` if it is not a
   * backup, is damaged, or has a schema that rankd did not create.
   */
  examineBackup(file: string): Promise<ExaminedBackup>;
  /**
   * Replaces the database with a copy of the backup. The caller has examined the backup and holds the daemon lock. An
   * interruption leaves either the old or the new database intact. Throws `conflict` if another process has the
   * database open, and `usage` if the backup is the database itself.
   */
  restore(request: RestoreRequest): Promise<Restored>;
  /** Returns names for shell completion, and none if the database can't be read. Never throws. */
  findNames(query: NamesQuery): Promise<Names>;
  /**
   * Makes this process the only daemon that uses the data, until the lock is disposed or the process ends. Throws
   * `conflict` if another daemon has the lock.
   */
  lockDaemon(): Promise<AsyncDisposable>;
  /** True if a daemon in any process holds the lock. */
  isDaemonRunning(): Promise<boolean>;
}

/** The results of `check`. `schema` is `undefined` if it could not be read. */
export interface StoreReport {
  schema: number | undefined;
  /** The newest schema that this rankd supports. */
  newestSchema: number;
  checks: StoreCheck[];
  /** The fix to suggest if a check has failed. */
  fix: string;
}

/** The result of one check, as text for the operator. */
export interface StoreCheck {
  name: string;
  ok: boolean;
  detail: string;
}

/**
 * The cluster behind an address, identified by the `system_identifier` that a server and its standbys share, or by
 * `unreported` if the server does not report it to this user.
 */
export interface KnownServer {
  /** The address, as text for the operator. */
  place: string;
  /** The cluster that rankd used before; `undefined` if the data directory has no record of one. */
  known: string | undefined;
  found: string;
  /**
   * Makes the found cluster the known one, even for a daemon that is running on the data directory. Unless the database
   * is empty, records this in its audit log.
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
  /** True if the server syncs committed data to disk (`fsync`). */
  isSynced: boolean;
  writesFullPages: boolean;
  isCommitSynced: boolean;
  /** Settings of the user or the database that rankd overrides in its transactions. */
  overridden: readonly string[];
  /** The time after which the server closes idle connections, in milliseconds; 0 means never. */
  idleSessionTimeoutMs: number;
  /** True if the server proves its identity with a password, with a certificate, or through the owner of its socket. */
  isProven: boolean;
  standbyCount: number;
  /** The number of standbys that a commit may wait for: all, or 0 if the server names no synchronous standby. */
  synchronousCount: number;
  connections: { most: number; used: number };
  /** The object that the user has no permission to change: the schema or, if there is no schema, the database. */
  lacks: 'schema' | 'database' | undefined;
  /** The server's clock minus this machine's, in milliseconds. */
  aheadMs: number;
}

/** The result of a migration to the newest schema, or of a trial. */
export interface Migration {
  /** The location of the database, as text for the operator. */
  database: string;
  /** The schema before and after; both are the same if there is nothing to do. */
  from: number;
  to: number;
  /** The path of the copy that was made before the migration, or null. */
  copy: string | null;
  /** A note for the operator. */
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
  /** The newest schema that this rankd supports. */
  newestSchema: number;
}

export interface BackupTarget {
  /** Absolute path. Links are followed. */
  file: string;
  mayReplace: boolean;
}

export interface RestoreRequest {
  /** Absolute path of the backup. */
  file: string;
  /** The actor recorded in the audit log. */
  by: string;
}

export interface Restored {
  /** The path of the previous database; `undefined` if there was none. */
  kept: string | undefined;
}

export interface NamesQuery {
  /** The first digits of the place ids. */
  placesLike: string;
  /** Only the places of this key (id or name). If absent, the places of every key that is not revoked. */
  placesOf?: string | undefined;
  /** The first letters of the users' names, ignoring case. If absent, no users are returned. */
  usersLike?: string;
}

export interface Names {
  /** The keys that are not revoked, by name. */
  keys: Array<{ name: string; mode: string }>;
  /** Whitelisted places, ascending. */
  places: number[];
  /** The served group's roles as last read, or the simulated group's if none is served yet, ascending by rank. */
  roles: StoredRole[];
  /** The names of users, ascending. */
  users: string[];
}

/** A row in a form that every engine can read and write: a boolean is 1 or 0, a list is JSON, bytes are bytes. */
export type StoredRow = Readonly<Record<string, number | string | Uint8Array | null>>;

/** A snapshot of all data in a store. */
export interface StoreContents {
  /** Yields a table's rows in pages, in key order. */
  rows(table: string): AsyncIterable<StoredRow[]>;
  /** Returns the highest row number that each table has ever had, including removed rows. */
  numbers(): Promise<ReadonlyMap<string, number>>;
}

/** The number of rows copied from each table, and the newest audit event. */
export interface CopiedContents {
  tables: ReadonlyMap<string, number>;
  head: { id: number; hash: string };
}

/** The source or target of a copy of rankd's data. */
export interface CopyPlace {
  /** The location, as text for the operator, without any password. */
  text: string;
  /**
   * Prevents daemons from starting until the result is disposed, if the place has a daemon lock. Throws `conflict` if a
   * daemon is using the place.
   */
  lockOutDaemons(): Promise<AsyncDisposable>;
  /**
   * Passes a snapshot of the data to `work`. Throws `not_found` if there is no data, `conflict` if its schema is not
   * the newest, and the same errors as `StoreOperations`.
   */
  read<T>(work: (contents: StoreContents) => Promise<T>): Promise<T>;
  /**
   * Creates the database from the contents and compares the two. A failure leaves nothing behind. Throws
   * `already_exists` if there is data already, `usage` if the place is a backup file, and `conflict` if audit events
   * are missing or altered.
   */
  fill(contents: StoreContents): Promise<CopiedContents>;
}
