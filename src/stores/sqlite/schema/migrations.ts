/**
 * The schema, as the steps from one version to the next; a database's `user_version` is the number of steps it has seen. Append only: never
 * edit a step that was released.
 *
 * Times are epoch milliseconds, booleans 0 or 1, lists JSON. Rows that have an order of arrival carry a sequence
 * number, because the wall clock can jump.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE schema_steps (
    version INTEGER PRIMARY KEY,
    rankd   TEXT    NOT NULL,
    at      INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE workspace (
    one_row    INTEGER PRIMARY KEY CHECK (one_row = 1),
    id         TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    plan       TEXT    NOT NULL CHECK (plan IN ('top', 'free')),
    active     INTEGER NOT NULL CHECK (active IN (0, 1)),
    created_at INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE keys (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT    NOT NULL UNIQUE,
    name          TEXT    NOT NULL,
    mode          TEXT    NOT NULL CHECK (mode IN ('live', 'test')),
    scopes        TEXT    NOT NULL,
    max_rank      INTEGER,
    min_rank      INTEGER,
    max_rank_role INTEGER,
    min_rank_role INTEGER,
    direction     TEXT    CHECK (direction IN ('promote', 'demote')),
    self_rank     TEXT    CHECK (self_rank = 'deny'),
    is_system     INTEGER CHECK (is_system IN (0, 1)),
    is_privileged INTEGER CHECK (is_privileged IN (0, 1)),
    is_simulated  INTEGER CHECK (is_simulated IN (0, 1)),
    is_any_place  INTEGER CHECK (is_any_place IN (0, 1)),
    is_for_discord INTEGER CHECK (is_for_discord IN (0, 1)),
    rate          INTEGER,
    created_at    INTEGER NOT NULL,
    expires_at    INTEGER,
    revoked_at    INTEGER,
    paused_at     INTEGER,
    resumed_at    INTEGER,
    declared_in   TEXT
  ) STRICT;
  CREATE UNIQUE INDEX one_key_a_name ON keys (name) WHERE revoked_at IS NULL;

  CREATE TABLE key_secrets (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    key_id        TEXT    NOT NULL REFERENCES keys (id),
    hash          BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
    masked        TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    replaced_at   INTEGER,
    expires_at    INTEGER
  ) STRICT;
  CREATE INDEX secrets_of_a_key ON key_secrets (key_id);

  CREATE TABLE secret_uses (
    secret_seq    INTEGER PRIMARY KEY,
    last_used_at  INTEGER NOT NULL,
    last_place_id INTEGER
  ) STRICT;

  CREATE TABLE whitelist (
    key_id      TEXT    NOT NULL REFERENCES keys (id),
    place_id    INTEGER NOT NULL,
    active      INTEGER NOT NULL CHECK (active IN (0, 1)),
    note        TEXT    NOT NULL,
    added_at    INTEGER NOT NULL,
    declared_in TEXT,
    PRIMARY KEY (key_id, place_id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE rank_changes (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT    NOT NULL UNIQUE,
    group_title     TEXT    NOT NULL,
    kind            TEXT    CHECK (kind IN ('role_added', 'role_removed')),
    state           TEXT    NOT NULL CHECK (state IN ('pending', 'applied', 'refused', 'failed', 'unknown')),
    code            TEXT,
    message         TEXT    NOT NULL,
    rankee_id       INTEGER NOT NULL,
    rankee_name     TEXT    NOT NULL,
    ranker_id       INTEGER NOT NULL,
    ranker_name     TEXT    NOT NULL,
    new_rank_id     INTEGER NOT NULL,
    role_id         INTEGER,
    old_role_id     INTEGER,
    role_names      TEXT    CHECK (json_valid(role_names)),
    hold            TEXT    CHECK (json_valid(hold)),
    roles_before    TEXT    NOT NULL,
    roles_after     TEXT    NOT NULL,
    phase           TEXT    NOT NULL CHECK (phase IN ('forward', 'compensate')),
    key_id          TEXT,
    place_id        INTEGER,
    done_by         TEXT    NOT NULL,
    dry_run         INTEGER NOT NULL CHECK (dry_run IN (0, 1)),
    demotion        INTEGER NOT NULL CHECK (demotion IN (0, 1)),
    privileged      INTEGER NOT NULL DEFAULT 0 CHECK (privileged IN (0, 1)),
    top_rank        INTEGER NOT NULL,
    command         TEXT,
    reason          TEXT,
    old_rank_name   TEXT,
    prefix          TEXT,
    webhook_host    TEXT,
    webhook_hash    TEXT,
    requested_at    INTEGER NOT NULL,
    finished_at     INTEGER,
    undo_of         TEXT,
    undo_id         TEXT,
    idempotency_key TEXT,
    fingerprint     TEXT,
    node            TEXT,
    takeovers       INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE UNIQUE INDEX one_open_change_a_member ON rank_changes (rankee_id) WHERE state IN ('pending', 'unknown');
  CREATE UNIQUE INDEX one_change_an_idempotency_key ON rank_changes (key_id, idempotency_key, group_title)
    WHERE idempotency_key IS NOT NULL;
  CREATE INDEX changes_by_time ON rank_changes (requested_at, top_rank);
  CREATE INDEX changes_of_a_member ON rank_changes (rankee_id);
  CREATE INDEX changes_by_a_key ON rank_changes (key_id);
  CREATE INDEX changes_of_an_undo ON rank_changes (undo_id) WHERE undo_id IS NOT NULL;
  CREATE INDEX written_to_a_member ON rank_changes (rankee_id)
    WHERE NOT dry_run AND (phase = 'compensate' OR roles_before <> roles_after);
  CREATE INDEX changes_by_a_ranker ON rank_changes (ranker_id)
    WHERE NOT dry_run AND roles_before <> roles_after;
  CREATE INDEX demotions ON rank_changes (requested_at, rankee_id, key_id)
    WHERE demotion AND NOT dry_run AND roles_before <> roles_after;
  CREATE INDEX privileged_changes ON rank_changes (requested_at, rankee_id, key_id)
    WHERE privileged AND NOT dry_run AND roles_before <> roles_after;
  CREATE INDEX changes_by_member_name ON rank_changes (rankee_name COLLATE NOCASE);
  CREATE INDEX changes_asked_by ON rank_changes (ranker_id);
  CREATE INDEX changes_at_a_place ON rank_changes (place_id) WHERE place_id IS NOT NULL;
  CREATE INDEX changes_not_applied ON rank_changes (state) WHERE state <> 'applied';

  CREATE TABLE member_queue (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    rankee_id INTEGER NOT NULL,
    node      TEXT    NOT NULL
  ) STRICT;
  CREATE INDEX queue_of_a_member ON member_queue (rankee_id, seq);

  CREATE TABLE audit_events (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    done_by TEXT    NOT NULL,
    action  TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    key_id  TEXT,
    detail  TEXT    NOT NULL CHECK (json_valid(detail)),
    hash    BLOB    NOT NULL CHECK (length(hash) = 32)
  ) STRICT;
  CREATE INDEX backups ON audit_events (id) WHERE action = 'database.backup';

  CREATE TABLE audit_anchor (
    one_row INTEGER PRIMARY KEY CHECK (one_row = 1),
    last_id INTEGER NOT NULL,
    hash    BLOB    NOT NULL CHECK (length(hash) = 32)
  ) STRICT;
  INSERT INTO audit_anchor VALUES (1, 0, zeroblob(32));

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

  CREATE TABLE audit_people (
    event_id INTEGER NOT NULL,
    field    TEXT    NOT NULL,
    user_id  INTEGER NOT NULL,
    salt     TEXT,
    PRIMARY KEY (event_id, field)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX events_about_a_person ON audit_people (user_id);

  CREATE TABLE base_roles (
    group_title TEXT    PRIMARY KEY,
    role_id     INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE served_group (
    one_row     INTEGER PRIMARY KEY CHECK (one_row = 1),
    group_title TEXT    NOT NULL,
    config_file TEXT
  ) STRICT;

  CREATE TABLE group_roles (
    role_id     INTEGER NOT NULL,
    group_title TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    rank        INTEGER NOT NULL,
    PRIMARY KEY (group_title, role_id)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE user_names (
    user_id  INTEGER PRIMARY KEY,
    name     TEXT,
    found_at INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE discord_people (
    discord_id TEXT    PRIMARY KEY,
    salt       TEXT    NOT NULL,
    user_id    INTEGER,
    linked_by  TEXT,
    linked_at  INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX discord_people_of_a_user ON discord_people (user_id) WHERE user_id IS NOT NULL;

  CREATE TABLE holds (
    seq              INTEGER PRIMARY KEY AUTOINCREMENT,
    id               TEXT    NOT NULL UNIQUE,
    group_title      TEXT    NOT NULL,
    kind             TEXT    NOT NULL CHECK (kind IN ('suspension', 'temporary')),
    state            TEXT    NOT NULL
      CHECK (state IN ('active', 'ending', 'ended', 'lifted', 'superseded', 'forfeited', 'stuck')),
    rankee_id        INTEGER NOT NULL,
    rankee_name      TEXT    NOT NULL,
    roles_before     TEXT    NOT NULL CHECK (json_valid(roles_before)),
    roles_during     TEXT    NOT NULL CHECK (json_valid(roles_during)),
    change_id        TEXT    NOT NULL,
    return_change_id TEXT,
    ranker_id        INTEGER NOT NULL,
    ranker_name      TEXT    NOT NULL,
    reason           TEXT,
    done_by          TEXT    NOT NULL,
    key_id           TEXT,
    place_id         INTEGER,
    begins_at        INTEGER NOT NULL,
    ends_at          INTEGER,
    ended_at         INTEGER,
    away_since       INTEGER,
    tries            INTEGER NOT NULL,
    next_try_at      INTEGER,
    code             TEXT,
    message          TEXT    NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX one_open_hold_a_member ON holds (group_title, rankee_id)
    WHERE state IN ('active', 'ending', 'stuck');
  CREATE INDEX holds_of_a_member ON holds (rankee_id);
  CREATE INDEX suspensions_by_beginning ON holds (begins_at) WHERE kind = 'suspension';
  CREATE INDEX holds_by_end ON holds (ends_at) WHERE state IN ('active', 'stuck');

  CREATE TABLE erasure_requests (
    id           TEXT    PRIMARY KEY,
    user_id      INTEGER NOT NULL,
    requested_at INTEGER NOT NULL,
    received_at  INTEGER NOT NULL,
    done_at      INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX waiting_erasures ON erasure_requests (user_id) WHERE done_at IS NULL;

  CREATE TABLE webhooks (
    seq              INTEGER PRIMARY KEY AUTOINCREMENT,
    id               TEXT    NOT NULL UNIQUE,
    name             TEXT    NOT NULL UNIQUE,
    kind             TEXT    NOT NULL CHECK (kind IN ('standard', 'discord')),
    shown            TEXT    NOT NULL,
    address          TEXT,
    address_hash     TEXT,
    secret           TEXT,
    old_secret       TEXT,
    old_secret_until INTEGER,
    events           TEXT    NOT NULL CHECK (json_valid(events)),
    mention          TEXT,
    is_for_games     INTEGER CHECK (is_for_games IN (0, 1)),
    state            TEXT    NOT NULL CHECK (state IN ('enabled', 'disabled')),
    why              TEXT,
    cursor           INTEGER NOT NULL,
    alarm_cursor     INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    declared_in      TEXT,
    failing_since    INTEGER,
    failed_tries     INTEGER NOT NULL,
    last_ok_at       INTEGER,
    last_error       TEXT,
    held_until       INTEGER
  ) STRICT;
  CREATE TABLE webhook_deliveries (
    webhook_id  TEXT    NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    sequence    INTEGER NOT NULL,
    type        TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('waiting', 'delivered', 'failed')),
    tries       INTEGER NOT NULL,
    status      INTEGER,
    error       TEXT,
    next_try_at INTEGER,
    first_at    INTEGER NOT NULL,
    last_at     INTEGER NOT NULL,
    PRIMARY KEY (webhook_id, sequence)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX waiting_deliveries ON webhook_deliveries (webhook_id, sequence) WHERE state = 'waiting';

  CREATE TABLE login_links (
    hash         TEXT    PRIMARY KEY,
    made_by      TEXT    NOT NULL,
    is_view_only INTEGER NOT NULL CHECK (is_view_only IN (0, 1)),
    life_ms      INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE role_meanings (
    group_title TEXT NOT NULL,
    setting     TEXT NOT NULL,
    entry       TEXT NOT NULL,
    roles       TEXT NOT NULL CHECK (json_valid(roles)),
    told        TEXT,
    PRIMARY KEY (group_title, setting, entry)
  ) STRICT, WITHOUT ROWID;
  `,
];
