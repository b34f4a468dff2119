/** The parts of the table definitions that differ between the engines. */
export interface TableForms {
  /** The column type for a row number in insertion order. */
  seq: string;
  eventId: string;
  /** The column type for the primary key of a single-row table. */
  oneRow: string;
  /** The column type for epoch milliseconds and platform ids. */
  long: string;
  bytes: string;
  flag(column: string): string;
  json(column: string): string;
  /** Options for an ordinary table. */
  rows: string;
  /** Options for a table that is stored in primary-key order. */
  byKey: string;
  /** The trailing column of an index in insertion order; empty for SQLite, where every index already ends with it. */
  bySeq: string;
  /** An index column for case-insensitive comparison. */
  anyCase(column: string): string;
  /** 32 zero bytes. */
  noHash: string;
}

/**
 * Returns the SQL that creates the tables, which is part of both engines' first migration.
 *
 * Times are epoch milliseconds. Rows that need an order have a sequence number, because the clock can jump.
 */
export function tables(forms: TableForms): string {
  const { seq, eventId, oneRow, long, bytes, flag, json, rows, byKey, bySeq, anyCase, noHash } = forms;
  return `
  CREATE TABLE workspace (
    one_row    ${oneRow},
    id         text NOT NULL,
    name       text NOT NULL,
    plan       text NOT NULL CHECK (plan IN ('top', 'free')),
    ${flag('active')} NOT NULL,
    created_at ${long} NOT NULL
  ) ${rows};

  CREATE TABLE keys (
    seq           ${seq},
    id            text NOT NULL UNIQUE,
    name          text NOT NULL,
    mode          text NOT NULL CHECK (mode IN ('live', 'test')),
    scopes        text NOT NULL,
    max_rank      integer,
    min_rank      integer,
    max_rank_role ${long},
    min_rank_role ${long},
    direction     text CHECK (direction IN ('promote', 'demote')),
    self_rank     text CHECK (self_rank = 'deny'),
    ${flag('is_system')},
    ${flag('is_privileged')},
    ${flag('is_any_place')},
    ${flag('is_for_discord')},
    ${flag('is_simulated')},
    rate          integer,
    created_at    ${long} NOT NULL,
    expires_at    ${long},
    revoked_at    ${long},
    paused_at     ${long},
    resumed_at    ${long},
    declared_in   text
  ) ${rows};
  CREATE UNIQUE INDEX one_key_a_name ON keys (name) WHERE revoked_at IS NULL;

  CREATE TABLE key_secrets (
    seq         ${seq},
    key_id      text NOT NULL REFERENCES keys (id),
    hash        ${bytes} NOT NULL UNIQUE CHECK (length(hash) = 32),
    masked      text NOT NULL,
    created_at  ${long} NOT NULL,
    replaced_at ${long},
    expires_at  ${long}
  ) ${rows};
  CREATE INDEX secrets_of_a_key ON key_secrets (key_id);

  CREATE TABLE secret_uses (
    secret_seq    ${long} PRIMARY KEY,
    last_used_at  ${long} NOT NULL,
    last_place_id ${long}
  ) ${rows};

  CREATE TABLE whitelist (
    key_id      text NOT NULL REFERENCES keys (id),
    place_id    ${long} NOT NULL,
    ${flag('active')} NOT NULL,
    note        text NOT NULL,
    added_at    ${long} NOT NULL,
    declared_in text,
    PRIMARY KEY (key_id, place_id)
  ) ${byKey};

  CREATE TABLE rank_changes (
    seq             ${seq},
    id              text NOT NULL UNIQUE,
    group_title     text NOT NULL,
    kind            text CHECK (kind IN ('role_added', 'role_removed')),
    state           text NOT NULL CHECK (state IN ('pending', 'applied', 'refused', 'failed', 'unknown')),
    code            text,
    message         text NOT NULL,
    rankee_id       ${long} NOT NULL,
    rankee_name     text NOT NULL,
    ranker_id       ${long} NOT NULL,
    ranker_name     text NOT NULL,
    new_rank_id     ${long} NOT NULL,
    role_id         ${long},
    old_role_id     ${long},
    roles_before    text NOT NULL,
    roles_after     text NOT NULL,
    ${json('role_names')},
    phase           text NOT NULL CHECK (phase IN ('forward', 'compensate')),
    key_id          text,
    place_id        ${long},
    done_by         text NOT NULL,
    ${flag('dry_run')} NOT NULL,
    ${flag('demotion')} NOT NULL,
    ${flag('privileged')} NOT NULL,
    top_rank        integer NOT NULL,
    command         text,
    old_rank_name   text,
    prefix          text,
    webhook_host    text,
    webhook_hash    text,
    reason          text,
    requested_at    ${long} NOT NULL,
    finished_at     ${long},
    undo_of         text,
    undo_id         text,
    ${json('hold')},
    idempotency_key text,
    fingerprint     text,
    node            text,
    takeovers       integer NOT NULL DEFAULT 0
  ) ${rows};
  CREATE UNIQUE INDEX one_open_change_a_member ON rank_changes (rankee_id) WHERE state IN ('pending', 'unknown');
  CREATE UNIQUE INDEX one_change_an_idempotency_key ON rank_changes (key_id, idempotency_key, group_title)
    WHERE idempotency_key IS NOT NULL;
  CREATE INDEX changes_by_time ON rank_changes (requested_at, top_rank);
  CREATE INDEX changes_of_a_member ON rank_changes (rankee_id${bySeq});
  CREATE INDEX changes_by_a_key ON rank_changes (key_id${bySeq});
  CREATE INDEX changes_of_an_undo ON rank_changes (undo_id) WHERE undo_id IS NOT NULL;
  CREATE INDEX written_to_a_member ON rank_changes (rankee_id${bySeq})
    WHERE NOT dry_run AND (phase = 'compensate' OR roles_before <> roles_after);
  CREATE INDEX changes_by_a_ranker ON rank_changes (ranker_id${bySeq})
    WHERE NOT dry_run AND roles_before <> roles_after;
  CREATE INDEX demotions ON rank_changes (requested_at, rankee_id, key_id)
    WHERE demotion AND NOT dry_run AND roles_before <> roles_after;
  CREATE INDEX privileged_changes ON rank_changes (requested_at, rankee_id, key_id)
    WHERE privileged AND NOT dry_run AND roles_before <> roles_after;
  CREATE INDEX changes_by_member_name ON rank_changes (${anyCase('rankee_name')});
  CREATE INDEX changes_asked_by ON rank_changes (ranker_id${bySeq});
  CREATE INDEX changes_at_a_place ON rank_changes (place_id${bySeq}) WHERE place_id IS NOT NULL;
  CREATE INDEX changes_not_applied ON rank_changes (state${bySeq}) WHERE state <> 'applied';

  CREATE TABLE holds (
    seq              ${seq},
    id               text NOT NULL UNIQUE,
    group_title      text NOT NULL,
    kind             text NOT NULL CHECK (kind IN ('suspension', 'temporary')),
    state            text NOT NULL
      CHECK (state IN ('active', 'ending', 'ended', 'lifted', 'superseded', 'forfeited', 'stuck')),
    rankee_id        ${long} NOT NULL,
    rankee_name      text NOT NULL,
    ${json('roles_before')} NOT NULL,
    ${json('roles_during')} NOT NULL,
    change_id        text NOT NULL,
    return_change_id text,
    ranker_id        ${long} NOT NULL,
    ranker_name      text NOT NULL,
    reason           text,
    done_by          text NOT NULL,
    key_id           text,
    place_id         ${long},
    begins_at        ${long} NOT NULL,
    ends_at          ${long},
    ended_at         ${long},
    away_since       ${long},
    tries            integer NOT NULL,
    next_try_at      ${long},
    code             text,
    message          text NOT NULL
  ) ${rows};
  CREATE UNIQUE INDEX one_open_hold_a_member ON holds (group_title, rankee_id)
    WHERE state IN ('active', 'ending', 'stuck');
  CREATE INDEX holds_of_a_member ON holds (rankee_id);
  CREATE INDEX suspensions_by_beginning ON holds (begins_at) WHERE kind = 'suspension';
  CREATE INDEX holds_by_end ON holds (ends_at) WHERE state IN ('active', 'stuck');

  CREATE TABLE audit_events (
    id      ${eventId},
    at      ${long} NOT NULL,
    done_by text NOT NULL,
    action  text NOT NULL,
    subject text NOT NULL,
    key_id  text,
    ${json('detail')} NOT NULL,
    hash    ${bytes} NOT NULL CHECK (length(hash) = 32)
  ) ${rows};
  CREATE INDEX backups ON audit_events (id) WHERE action = 'database.backup';

  CREATE TABLE audit_people (
    event_id ${long} NOT NULL,
    field    text NOT NULL,
    user_id  ${long} NOT NULL,
    salt     text,
    PRIMARY KEY (event_id, field)
  ) ${byKey};
  CREATE INDEX events_about_a_person ON audit_people (user_id);

  CREATE TABLE audit_anchor (
    one_row ${oneRow},
    last_id ${long} NOT NULL,
    hash    ${bytes} NOT NULL CHECK (length(hash) = 32)
  ) ${rows};
  INSERT INTO audit_anchor VALUES (true, 0, ${noHash});

  CREATE TABLE base_roles (
    group_title text PRIMARY KEY,
    role_id     ${long} NOT NULL
  ) ${byKey};

  CREATE TABLE served_group (
    one_row     ${oneRow},
    group_title text NOT NULL,
    config_file text
  ) ${rows};

  CREATE TABLE group_roles (
    group_title text NOT NULL,
    role_id     ${long} NOT NULL,
    name        text NOT NULL,
    rank        integer NOT NULL,
    PRIMARY KEY (group_title, role_id)
  ) ${byKey};

  CREATE TABLE user_names (
    user_id  ${long} PRIMARY KEY,
    name     text,
    found_at ${long} NOT NULL
  ) ${rows};

  CREATE TABLE discord_people (
    discord_id text PRIMARY KEY,
    salt       text NOT NULL,
    user_id    ${long},
    linked_by  text,
    linked_at  ${long}
  ) ${byKey};
  CREATE INDEX discord_people_of_a_user ON discord_people (user_id) WHERE user_id IS NOT NULL;

  CREATE TABLE erasure_requests (
    id           text PRIMARY KEY,
    user_id      ${long} NOT NULL,
    requested_at ${long} NOT NULL,
    received_at  ${long} NOT NULL,
    done_at      ${long}
  ) ${byKey};
  CREATE INDEX waiting_erasures ON erasure_requests (user_id) WHERE done_at IS NULL;

  CREATE TABLE webhooks (
    seq              ${seq},
    id               text NOT NULL UNIQUE,
    name             text NOT NULL UNIQUE,
    kind             text NOT NULL CHECK (kind IN ('standard', 'discord')),
    shown            text NOT NULL,
    address          text,
    address_hash     text,
    secret           text,
    old_secret       text,
    old_secret_until ${long},
    ${json('events')} NOT NULL,
    mention          text,
    ${flag('is_for_games')},
    state            text NOT NULL CHECK (state IN ('enabled', 'disabled')),
    why              text,
    cursor           ${long} NOT NULL,
    alarm_cursor     ${long} NOT NULL,
    created_at       ${long} NOT NULL,
    declared_in      text,
    failing_since    ${long},
    failed_tries     integer NOT NULL,
    last_ok_at       ${long},
    last_error       text,
    held_until       ${long}
  ) ${rows};

  CREATE TABLE webhook_deliveries (
    webhook_id  text NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    sequence    ${long} NOT NULL,
    type        text NOT NULL,
    state       text NOT NULL CHECK (state IN ('waiting', 'delivered', 'failed')),
    tries       integer NOT NULL,
    status      integer,
    error       text,
    next_try_at ${long},
    first_at    ${long} NOT NULL,
    last_at     ${long} NOT NULL,
    PRIMARY KEY (webhook_id, sequence)
  ) ${byKey};
  CREATE INDEX waiting_deliveries ON webhook_deliveries (webhook_id, sequence) WHERE state = 'waiting';

  CREATE TABLE login_links (
    hash         text PRIMARY KEY,
    made_by      text NOT NULL,
    ${flag('is_view_only')} NOT NULL,
    life_ms      ${long} NOT NULL,
    expires_at   ${long} NOT NULL
  ) ${byKey};

  CREATE TABLE role_meanings (
    group_title text NOT NULL,
    setting     text NOT NULL,
    entry       text NOT NULL,
    ${json('roles')} NOT NULL,
    alarm       text,
    PRIMARY KEY (group_title, setting, entry)
  ) ${byKey};
`;
}
