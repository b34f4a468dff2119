import { tables } from '../../sql/schema.ts';

/**
 * All migrations, in order. A database's `user_version` is the number of migrations applied to it. Append only: never
 * edit a released migration.
 */
export const migrations: readonly string[] = [
  `${tables({
    ...{ seq: 'INTEGER PRIMARY KEY AUTOINCREMENT', eventId: 'INTEGER PRIMARY KEY AUTOINCREMENT' },
    ...{ oneRow: 'INTEGER PRIMARY KEY CHECK (one_row = 1)', long: 'INTEGER', bytes: 'BLOB' },
    flag: (column) => `${column} INTEGER CHECK (${column} IN (0, 1))`,
    json: (column) => `${column} TEXT CHECK (json_valid(${column}))`,
    ...{ rows: 'STRICT', byKey: 'STRICT, WITHOUT ROWID', bySeq: '', noHash: 'zeroblob(32)' },
    anyCase: (column) => `${column} COLLATE NOCASE`,
  })}

  CREATE TABLE schema_steps (
    version INTEGER PRIMARY KEY,
    rankd   TEXT    NOT NULL,
    at      INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE member_queue (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    rankee_id INTEGER NOT NULL,
    node      TEXT    NOT NULL
  ) STRICT;
  CREATE INDEX queue_of_a_member ON member_queue (rankee_id, seq);

  CREATE TRIGGER audit_only_grows_at_its_end BEFORE INSERT ON audit_events
    WHEN NEW.id <= (SELECT max(coalesce(max(id), 0), (SELECT last_id FROM audit_anchor)) FROM audit_events)
    BEGIN SELECT RAISE (ABORT, 'audit events are only added at the end'); END;
  CREATE TRIGGER audit_is_never_edited BEFORE UPDATE ON audit_events
    BEGIN SELECT RAISE (ABORT, 'audit events are never edited'); END;
  CREATE TRIGGER audit_is_never_deleted BEFORE DELETE ON audit_events
    WHEN OLD.id > (SELECT last_id FROM audit_anchor)
    BEGIN SELECT RAISE (ABORT, 'audit events are never deleted'); END;
  CREATE TRIGGER audit_anchor_is_one_row BEFORE INSERT ON audit_anchor
    BEGIN SELECT RAISE (ABORT, 'the audit has one anchor'); END;
  CREATE TRIGGER audit_anchor_moves_along_the_chain BEFORE UPDATE ON audit_anchor
    WHEN NOT EXISTS (SELECT 1 FROM audit_events WHERE id = NEW.last_id AND hash = NEW.hash)
    BEGIN SELECT RAISE (ABORT, 'the audit is anchored to one of its own events'); END;
  CREATE TRIGGER audit_anchor_stays BEFORE DELETE ON audit_anchor
    BEGIN SELECT RAISE (ABORT, 'the audit keeps its anchor'); END;
  `,
];
