import type { KeptRole, Store } from './store.ts';

/** Where rankd keeps everything: an engine bound to the place where its data lies. */
export interface StoreEngine {
  /**
   * Opens the store; creates it or brings its schema up to date first. Throws `conflict` if it would have to migrate while other nodes work
   * on it. Also throws `no_permission`, `config_invalid` (what lies there is not rankd's), `schema_newer` and `store_unavailable`.
   */
  openStore(options?: OpenOptions): Promise<Store>;
  operations: StoreOperations;
  /** Where the data lies, in words for the operator. `isServer`: on a server, which other machines may share. */
  place(): Promise<{ text: string; isServer: boolean }>;
}

export interface OpenOptions {
  /** True for a daemon, which holds the daemon's lock: it answers others while a write waits for the disk. */
  isServed?: boolean;
  /** True for a command that only reads: then the database may be on a read-only file system. */
  isReading?: boolean;
  /** Called if nothing was stored there before. */
  onNew?: (() => void) | undefined;
  /** Called once an older schema was migrated. */
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
  /** Which server it is, whether or not it is the one from before; `undefined` if the database is a file. */
  server(): Promise<KnownServer | undefined>;
  /**
   * Brings the database to the newest schema, also while daemons work on it: one that can't work with the new schema notices it
   * (`Store.outgrown`). `advise` gets what the operator had better do before, if there is something to migrate.
   */
  migrate(advise?: (advice: string) => void): Promise<Migration>;
  /** The effect of `migrate`, tried without keeping the result. */
  tryMigration(): Promise<Migration>;
  /**
   * Copies one moment of the database to a file while others use it. The copy is checked before it gets its name.
   * Throws `already_exists`, and `usage` if the file is one that rankd works with, or is neither a file nor a folder.
   */
  backUp(target: BackupTarget): Promise<Backup>;
  /** As `backUp`, into a stream: `send` gets the copy piece by piece. */
  streamBackup(send: (chunk: Uint8Array) => Promise<void>): Promise<Backup>;
  /**
   * The content of a backup. Throws `not_found`, and `backup_unusable` if it is not a backup, is damaged, or has a
   * schema that rankd did not make.
   */
  examineBackup(file: string): Promise<ExaminedBackup>;
  /**
   * Puts a copy of the backup in the place of the database; the caller holds the daemon's lock. If it is cut off, the database is the
   * old or the new one, whole. Throws as `examineBackup`, and `conflict` if another process has the database open.
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
  mend: string;
}

/** One thing that was looked at, in words for the operator. */
export interface StoreCheck {
  name: string;
  ok: boolean;
  detail: string;
}

/** The cluster behind a place, by the `system_identifier` that a server and its standbys share, or `untold` if the user may not ask for it. */
export interface KnownServer {
  /** In words for the operator. */
  place: string;
  /** The one that rankd worked with before; `undefined` if the data directory has no note of one. */
  known: string | undefined;
  found: string;
  /** Makes the found one the known one, also for a running daemon of the data directory; the audit there records it, unless the database is still empty. */
  accept(by: string): Promise<void>;
}

/** How a server keeps the data, and how it is reached. */
export interface ServerFacts {
  version: string;
  user: string;
  database: string;
  isEncrypted: boolean;
  isOnThisMachine: boolean;
  /** Something that shares connections stands before it. */
  isPooled: boolean;
  /** True if committed data are on disk, pages are written completely, and commits wait for that. */
  isSynced: boolean;
  writesFullPages: boolean;
  isCommitSynced: boolean;
  /** Settings of the user or the database that rankd overrides in its transactions. */
  overridden: readonly string[];
  /** After how long the server ends connections that do nothing (milliseconds); 0: never. */
  idleSessionTimeoutMs: number;
  /** A password is configured, or TLS checks the certificate, or the server is on a socket: otherwise nothing proves which server answers. */
  isProven: boolean;
  standbyCount: number;
  /** Those that a commit waits for. */
  synchronousCount: number;
  connections: { most: number; used: number };
  /** The object that the user has no right to change: the existing schema, or the database without one. */
  lacks: 'schema' | 'database' | undefined;
  /** How far its clock is ahead of this machine's. */
  aheadMs: number;
}

/** A database that was brought to the newest schema, or would be. */
export interface Migration {
  /** Where the database lies. */
  database: string;
  /** The schema before and after; the same if there is nothing to do. */
  from: number;
  to: number;
  /** The path of the copy of the earlier database; null if nothing was copied. */
  copy: string | null;
  /** A note for the operator if something was migrated or tried. */
  note?: string;
}

/** How many rows there are. */
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
  /** Whether it has a digest, which matches. Without one, a changed byte may go unnoticed. */
  hasDigest: boolean;
}

export interface Backup extends BackupContents {
  bytes: number;
  /** The newest schema that this rankd knows. */
  newestSchema: number;
}

export interface BackupTarget {
  /** Absolute path. If it is a link, the file that it leads to is meant. */
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
  /** Where the previous database is kept; `undefined` if there was none. */
  kept: string | undefined;
}

export interface NamesQuery {
  /** How the places begin. */
  placesLike: string;
  /** Only the places of this key (id or name); without it, of every key that is not revoked. */
  placesOf?: string | undefined;
  /** How the names of users begin, in any case; without it, none are asked for. */
  usersLike?: string;
}

export interface Names {
  /** The keys that are not revoked, by name. */
  keys: Array<{ name: string; mode: string }>;
  /** Whitelisted places, ascending. */
  places: number[];
  /** The roles of the group that is served (of the simulated one, before any is) as they were last read, ascending by rank. */
  roles: KeptRole[];
  /** Names that Roblox told of users, ascending. */
  users: string[];
}

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
   * Creates the database there with the contents and compares it with them; a failure leaves nothing behind. Throws `already_exists` if
   * that place has data, and `conflict` if the audit is not whole.
   */
  fill(contents: StoreContents): Promise<CopiedContents>;
}
