import type { Store, StoredRole } from './store.ts';

/** A database engine bound to the location of rankd's data. */
export interface StoreEngine {
  /**
   * Opens the store; creates or migrates it first if necessary. Throws `conflict` if it would have to migrate while other nodes work
   * on it. Also throws `no_permission`, `config_invalid` (the data there is not rankd's), `schema_newer` and `store_unavailable`.
   */
  openStore(options?: OpenOptions): Promise<Store>;
  operations: StoreOperations;
  /** The location of the data, in words for the operator. `isServer`: on a server, which other machines may share. */
  place(): Promise<{ text: string; isServer: boolean }>;
}

export interface OpenOptions {
  /** True for a daemon, which holds the daemon's lock: even on a slow disk, it answers other requests while a write waits. */
  isServed?: boolean;
  /** True for a command that only reads: then the database may be on a read-only file system. */
  isReading?: boolean;
  /** Called if the store was created. */
  onNew?: (() => void) | undefined;
  /** Called after an older schema was migrated. */
  onMigrated?: ((migration: Migration) => void) | undefined;
}

/**
 * An operator's actions on a store as a whole. None opens the store for use, and only `migrate` and `restore` change
 * it.
 *
 * Errors: `not_found` if there is no database (except for `exists`, `findNames` and the daemon's lock),
 * `config_invalid` if it is not rankd's, `schema_newer`, `no_permission`, `store_unavailable`.
 */
export interface StoreOperations {
  /** Whether there is a database yet. */
  exists(): Promise<boolean>;
  /** Reads all of the database. Damage is an answer, not an error. */
  check(): Promise<StoreReport>;
  /** The server's facts; `undefined` if the database is a file. Throws the reason if the server can't be used. */
  serverFacts(): Promise<ServerFacts | undefined>;
  /** The server's identity, whether or not it has changed; `undefined` if the database is a file. */
  server(): Promise<KnownServer | undefined>;
  /**
   * Migrates the database to the newest schema, even while daemons work on it: a daemon that can't work with the new schema notices it
   * (`Store.outgrown`). `advise` gets the recommended precaution, if there is something to migrate.
   */
  migrate(advise?: (advice: string) => void): Promise<Migration>;
  /** The effect of `migrate`, tried without keeping the result. */
  tryMigration(): Promise<Migration>;
  /**
   * Copies a snapshot of the database to a file while others use it. The copy is checked before it gets its name.
   * Throws `already_exists`, and `usage` if the file is one that rankd works with, or is neither a file nor a folder.
   */
  backUp(target: BackupTarget): Promise<Backup>;
  /** Like `backUp`, into a stream: `send` gets the copy piece by piece. */
  streamBackup(send: (chunk: Uint8Array) => Promise<void>): Promise<Backup>;
  /**
   * The content of a backup. Throws `not_found`, and `backup_unusable` if it is not a backup, is damaged, or has a
   * schema that rankd did not make.
   */
  examineBackup(file: string): Promise<ExaminedBackup>;
  /**
   * Replaces the database with a copy of the backup; the caller holds the daemon's lock. If it is interrupted, the database is either the
   * old or the new one, whole. Throws like `examineBackup`, and `conflict` if another process has the database open.
   */
  restore(request: RestoreRequest): Promise<Restored>;
  /** Names for the shell's completion. Finds none if the database can't be read; never throws. */
  findNames(query: NamesQuery): Promise<Names>;
  /**
   * Makes this process the one daemon that works on the data, until the lock is disposed or the process ends, however it ends.
   * Throws `conflict` if another daemon has the lock.
   */
  lockDaemon(): Promise<AsyncDisposable>;
  /** Whether a daemon in any process works on the data right now. */
  isDaemonRunning(): Promise<boolean>;
}

/** The results of the checks. `schema` is `undefined` if it could not be read. */
export interface StoreReport {
  schema: number | undefined;
  /** The newest schema that this rankd knows. */
  newestSchema: number;
  checks: StoreCheck[];
  /** The fix for the operator if a check has failed. */
  fix: string;
}

/** The result of one check, in words for the operator. */
export interface StoreCheck {
  name: string;
  ok: boolean;
  detail: string;
}

/**
 * The cluster behind an address, by the `system_identifier` that a server and its standbys share, or `unreported` if the
 * user may not read it.
 */
export interface KnownServer {
  /** In words for the operator. */
  place: string;
  /** The cluster that rankd worked with before; `undefined` if the data directory has no record of one. */
  known: string | undefined;
  found: string;
  /** Makes the found cluster the known one, including for a running daemon of the data directory; the audit there records it, unless the database is still empty. */
  accept(by: string): Promise<void>;
}

/** A server's durability settings, and the way it is reached. */
export interface ServerFacts {
  version: string;
  user: string;
  database: string;
  isEncrypted: boolean;
  isOnThisMachine: boolean;
  /** Connections go through a pooler. */
  isPooled: boolean;
  /** True if the server syncs committed data to disk (`fsync`). */
  isSynced: boolean;
  writesFullPages: boolean;
  isCommitSynced: boolean;
  /** Settings of the user or the database that rankd overrides in its transactions. */
  overridden: readonly string[];
  /** The time after which the server closes idle connections (milliseconds); 0: never. */
  idleSessionTimeoutMs: number;
  /** A password is configured, or TLS checks the certificate, or the server is on a socket: otherwise nothing proves which server answers. */
  isProven: boolean;
  standbyCount: number;
  /** The standbys that a commit waits for. */
  synchronousCount: number;
  connections: { most: number; used: number };
  /** The object that the user has no right to change: the existing schema, or the database without one. */
  lacks: 'schema' | 'database' | undefined;
  /** How far its clock is ahead of this machine's. */
  aheadMs: number;
}

/** A migration to the newest schema, done or only tried. */
export interface Migration {
  /** The location of the database. */
  database: string;
  /** The schema before and after; the same if there is nothing to do. */
  from: number;
  to: number;
  /** The path of the copy of the earlier database; null if nothing was copied. */
  copy: string | null;
  /** A note for the operator if something was migrated or tried. */
  note?: string;
}

/** The numbers of rows. */
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
  /** True if it has a digest, which then matches. Without one, a changed byte may go unnoticed. */
  hasDigest: boolean;
}

export interface Backup extends BackupContents {
  bytes: number;
  /** The newest schema that this rankd knows. */
  newestSchema: number;
}

export interface BackupTarget {
  /** Absolute path. A link means the file that it leads to. */
  file: string;
  mayReplace: boolean;
}

export interface RestoreRequest {
  /** Absolute path of the backup. */
  file: string;
  /** The actor in the audit. */
  by: string;
}

export interface Restored {
  /** The path of the previous database; `undefined` if there was none. */
  kept: string | undefined;
}

export interface NamesQuery {
  /** The first digits of the places. */
  placesLike: string;
  /** Only the places of this key (id or name); without it, of every key that is not revoked. */
  placesOf?: string | undefined;
  /** The first letters of the users' names, in any case; without it, no users are returned. */
  usersLike?: string;
}

export interface Names {
  /** The keys that are not revoked, by name. */
  keys: Array<{ name: string; mode: string }>;
  /** Whitelisted places, ascending. */
  places: number[];
  /** The roles of the served group (of the simulated one if none is served yet) as they were last read, ascending by rank. */
  roles: StoredRole[];
  /** The names of users as Roblox reported them, ascending. */
  users: string[];
}

/** A row in a form that every engine can read and write: a boolean is 1 or 0, a list is JSON, bytes are bytes. */
export type StoredRow = Readonly<Record<string, number | string | Uint8Array | null>>;

/** A snapshot of all data in a store. */
export interface StoreContents {
  /** The rows of a table in the order of its key, page by page. */
  rows(table: string): AsyncIterable<StoredRow[]>;
  /** The highest number that a row of each table ever had, including removed rows. */
  numbers(): Promise<ReadonlyMap<string, number>>;
}

/** The number of rows copied from each table, and the newest event of the audit. */
export interface CopiedContents {
  tables: ReadonlyMap<string, number>;
  head: { id: number; hash: string };
}

/** The source or target of a copy of rankd's data. */
export interface CopyPlace {
  /** In words for the operator. It never holds a password. */
  text: string;
  /** Throws `conflict` if a daemon works there. If the place has a lock, no daemon can start until it is disposed. */
  lockOutDaemons(): Promise<AsyncDisposable>;
  /** Throws `not_found` if there is no data, and like `StoreOperations` if it is not this rankd's. */
  read<T>(work: (contents: StoreContents) => Promise<T>): Promise<T>;
  /**
   * Creates the database there from the contents and compares the two; a failure leaves nothing behind. Throws `already_exists` if
   * there is data already, and `conflict` if events of the audit are missing or altered.
   */
  fill(contents: StoreContents): Promise<CopiedContents>;
}
