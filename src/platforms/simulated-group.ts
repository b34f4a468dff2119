import { closeSync, openSync } from 'node:fs';
import Database from 'better-sqlite3';
import { codeOf, RankdError } from '../base/errors.ts';
import type { Member, NamedUser, Role } from '../core/model.ts';

/** The initial state of a simulated group. Every id is at most 2^53-1. */
export interface GroupSeed {
  id: number;
  name: string;
  /** A member who holds the owner role; absent if the group has no owner. */
  ownerId?: number;
  actingUserId: number;
  /** Includes the guest and the base role, and the owner role if there is an owner. */
  roles: Role[];
  /** Includes the owner and the acting account. Every member holds the base role, whether or not `roleIds` lists it. */
  members: Member[];
  users?: NamedUser[];
}

/** Marks an SQLite file as a simulated group (`rksg` in ASCII). */
const applicationId = 0x726b7367;

/** The longest wait for another process's write. It blocks the event loop. */
const busyTimeoutMs = 1000;

const idRange = `BETWEEN 1 AND ${Number.MAX_SAFE_INTEGER}`;
const schema = `
  DROP TABLE IF EXISTS held_roles;
  DROP TABLE IF EXISTS members;
  DROP TABLE IF EXISTS roles;
  DROP TABLE IF EXISTS community;
  CREATE TABLE community (
    id INTEGER PRIMARY KEY CHECK (id ${idRange}),
    name TEXT NOT NULL,
    owner_id INTEGER CHECK (owner_id ${idRange})
  ) STRICT;
  CREATE TABLE roles (
    id INTEGER PRIMARY KEY CHECK (id ${idRange}),
    name TEXT NOT NULL,
    rank INTEGER NOT NULL CHECK (rank BETWEEN 0 AND 255),
    kind TEXT NOT NULL CHECK (kind IN ('guest', 'base', 'owner', 'custom'))
  ) STRICT;
  CREATE TABLE members (user_id INTEGER PRIMARY KEY CHECK (user_id ${idRange})) STRICT;
  -- without the base role, which every member holds
  CREATE TABLE held_roles (
    user_id INTEGER NOT NULL REFERENCES members,
    role_id INTEGER NOT NULL REFERENCES roles,
    PRIMARY KEY (user_id, role_id)
  ) STRICT, WITHOUT ROWID;
`;

/**
 * Opens a simulated group's file, or creates it with mode 0600 in an existing folder. Fills the file from `seed` if it
 * is new or was filled from a different seed; otherwise, preserves its content. Throws `config_invalid` if the file is
 * some other database, and passes on SQLite's own errors.
 */
export function openGroup(file: string, seed: GroupSeed): Database.Database {
  createPrivate(file);
  const db = new Database(file, { timeout: busyTimeoutMs });
  try {
    refuseOtherFile(db, file);
    useWal(db);
    db.pragma('foreign_keys = ON');
    db.transaction(() => fill(db, seed)).immediate();
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Creates the file with mode 0600, which SQLite copies to its -wal and -shm files. */
function createPrivate(file: string): void {
  try {
    // Never opens an existing file: closing it would drop the locks of this process's other handles on it.
    closeSync(openSync(file, 'ax', 0o600));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

function refuseOtherFile(db: Database.Database, file: string): void {
  const isOurs = db.transaction(() => {
    const found = db.pragma('application_id', { simple: true });
    const isEmpty = db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get() === 0;
    return found === applicationId || (found === 0 && isEmpty);
  });
  // Both reads run in one transaction, because another process may be filling the new file.
  if (isOurs()) return;
  throw new RankdError('config_invalid', `${file} is a database, but not a simulated group.`, {
    hint: 'move that file away, or choose a different data directory',
  });
}

/**
 * Switches the file to WAL mode. Retries while another process does the same, because SQLite's busy timeout does not
 * apply here.
 */
function useWal(db: Database.Database): void {
  const pauseMs = 10;
  for (let waitedMs = 0; ; waitedMs += pauseMs) {
    try {
      db.pragma('journal_mode = WAL');
      return;
    } catch (error) {
      if (!codeOf(error).startsWith('SQLITE_BUSY') || waitedMs >= busyTimeoutMs) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
    }
  }
}

function fill(db: Database.Database, seed: GroupSeed): void {
  db.exec('CREATE TABLE IF NOT EXISTS filled_from (seed TEXT NOT NULL) STRICT');
  const text = seedText(seed);
  if (db.prepare('SELECT seed FROM filled_from').pluck().get() === text) return;

  db.pragma(`application_id = ${applicationId}`);
  db.exec(schema);
  db.prepare('DELETE FROM filled_from').run();
  db.prepare('INSERT INTO filled_from (seed) VALUES (?)').run(text);
  db.prepare('INSERT INTO community (id, name, owner_id) VALUES (?, ?, ?)').run(
    seed.id,
    seed.name,
    seed.ownerId ?? null,
  );
  const addRole = db.prepare('INSERT INTO roles (id, name, rank, kind) VALUES (:id, :name, :rank, :kind)');
  for (const role of seed.roles) addRole.run(role);
  const addMember = db.prepare('INSERT INTO members (user_id) VALUES (?)');
  const addHeld = db.prepare('INSERT INTO held_roles (user_id, role_id) VALUES (?, ?)');
  const base = seed.roles.find((role) => role.kind === 'base');
  for (const { userId, roleIds } of seed.members) {
    addMember.run(userId);
    for (const roleId of new Set(roleIds)) if (roleId !== base?.id) addHeld.run(userId, roleId);
  }
}

/**
 * Identifies the seed and the table schema that a file was filled from. If either changes, the file is refilled. Leaves
 * out the acting account and the user names, because the file does not contain them.
 */
function seedText({ actingUserId: _, users: _names, ...group }: GroupSeed): string {
  return JSON.stringify([schema, group]);
}
