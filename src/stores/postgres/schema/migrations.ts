/**
 * The schema, as the steps from one version to the next. Append only: never edit a step that was released. `livesWith` is the oldest schema
 * whose rankd can share the database with this one.
 *
 * Times are epoch milliseconds. Rows that have an order of arrival have a sequence number, because the clock can jump; a writer that adds
 * one holds the lock of the audit's head, so the numbers are in commit order.
 */
export const migrations: ReadonlyArray<{ sql: string; livesWith: number }> = [
  {
    livesWith: 1,
    sql: `
  CREATE TABLE rankd.schema_steps (
    version    integer PRIMARY KEY,
    lives_with integer NOT NULL,
    rankd      text    NOT NULL,
    at         bigint  NOT NULL
  );

  CREATE TABLE rankd.workspace (
    one_row    boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    id         text    NOT NULL,
    name       text    NOT NULL,
    plan       text    NOT NULL CHECK (plan IN ('top', 'free')),
    active     boolean NOT NULL,
    created_at bigint  NOT NULL
  );

  CREATE TABLE rankd.keys (
    seq           bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            text    NOT NULL UNIQUE,
    name          text    NOT NULL,
    mode          text    NOT NULL CHECK (mode IN ('live', 'test')),
    scopes        text    NOT NULL,
    max_rank      integer,
    min_rank      integer,
    max_rank_role bigint,
    min_rank_role bigint,
    direction     text             CHECK (direction IN ('promote', 'demote')),
    self_rank     text             CHECK (self_rank = 'deny'),
    is_system     boolean,
    is_privileged boolean,
    is_any_place  boolean,
    is_for_discord boolean,
    is_simulated  boolean,
    rate          integer,
    created_at    bigint  NOT NULL,
    expires_at    bigint,
    revoked_at    bigint,
    paused_at     bigint,
    resumed_at    bigint,
    declared_in   text
  );
  CREATE UNIQUE INDEX one_key_a_name ON rankd.keys (name) WHERE revoked_at IS NULL;

  CREATE TABLE rankd.key_secrets (
    seq         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key_id      text   NOT NULL REFERENCES rankd.keys (id),
    hash        bytea  NOT NULL UNIQUE CHECK (length(hash) = 32),
    masked      text   NOT NULL,
    created_at  bigint NOT NULL,
    replaced_at bigint,
    expires_at  bigint
  );
  CREATE INDEX secrets_of_a_key ON rankd.key_secrets (key_id);

  CREATE TABLE rankd.secret_uses (
    secret_seq    bigint PRIMARY KEY,
    last_used_at  bigint NOT NULL,
    last_place_id bigint
  );

  CREATE TABLE rankd.whitelist (
    key_id      text    NOT NULL REFERENCES rankd.keys (id),
    place_id    bigint  NOT NULL,
    active      boolean NOT NULL,
    note        text    NOT NULL,
    added_at    bigint  NOT NULL,
    declared_in text,
    PRIMARY KEY (key_id, place_id)
  );

  CREATE TABLE rankd.access_version (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    version bigint  NOT NULL
  );
  INSERT INTO rankd.access_version (version) VALUES (1);
  CREATE FUNCTION rankd.access_changes() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN UPDATE rankd.access_version SET version = version + 1; RETURN NULL; END $$;
  CREATE TRIGGER access_changes AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON rankd.workspace
    FOR EACH STATEMENT EXECUTE FUNCTION rankd.access_changes();
  CREATE TRIGGER access_changes AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON rankd.keys
    FOR EACH STATEMENT EXECUTE FUNCTION rankd.access_changes();
  CREATE TRIGGER access_changes AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON rankd.key_secrets
    FOR EACH STATEMENT EXECUTE FUNCTION rankd.access_changes();
  CREATE TRIGGER access_changes AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON rankd.whitelist
    FOR EACH STATEMENT EXECUTE FUNCTION rankd.access_changes();

  CREATE TABLE rankd.nodes (
    seq       bigint  GENERATED ALWAYS AS IDENTITY,
    id        text    PRIMARY KEY,
    beat      bigint  NOT NULL DEFAULT 0,
    beaten_at bigint  NOT NULL DEFAULT 0,
    name      text,
    status    text,
    ended_by  text,
    joined_at bigint  NOT NULL
  );

  CREATE TABLE rankd.node_commands (
    seq      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    node     text   NOT NULL REFERENCES rankd.nodes (id) ON DELETE CASCADE,
    does     text   NOT NULL,
    asked_by text   NOT NULL,
    outcome  text
  );
  CREATE INDEX commands_of_a_node ON rankd.node_commands (node);

  CREATE TABLE rankd.declarations (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    node       text   NOT NULL REFERENCES rankd.nodes (id) ON DELETE CASCADE,
    name       text   NOT NULL,
    definition text   NOT NULL,
    UNIQUE (node, name)
  );

  CREATE TABLE rankd.node_tasks (
    task text PRIMARY KEY,
    node text NOT NULL
  );

  CREATE TABLE rankd.rank_changes (
    seq             bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id              text     NOT NULL UNIQUE,
    group_title     text     NOT NULL,
    kind            text     CHECK (kind IN ('role_added', 'role_removed')),
    state           text     NOT NULL CHECK (state IN ('pending', 'applied', 'refused', 'failed', 'unknown')),
    code            text,
    message         text     NOT NULL,
    rankee_id       bigint   NOT NULL,
    rankee_name     text     NOT NULL,
    ranker_id       bigint   NOT NULL,
    ranker_name     text     NOT NULL,
    new_rank_id     bigint   NOT NULL,
    role_id         bigint,
    old_role_id     bigint,
    roles_before    text     NOT NULL,
    roles_after     text     NOT NULL,
    role_names      text,
    phase           text     NOT NULL CHECK (phase IN ('forward', 'compensate')),
    key_id          text,
    place_id        bigint,
    done_by         text     NOT NULL,
    dry_run         boolean  NOT NULL,
    demotion        boolean  NOT NULL,
    privileged      boolean  NOT NULL,
    top_rank        integer  NOT NULL,
    command         text,
    old_rank_name   text,
    prefix          text,
    webhook_host    text,
    webhook_hash    text,
    reason          text,
    requested_at    bigint   NOT NULL,
    finished_at     bigint,
    undo_of         text,
    undo_id         text,
    hold            text,
    idempotency_key text,
    fingerprint     text,
    node            text,
    takeovers       integer  NOT NULL DEFAULT 0
  );
  CREATE UNIQUE INDEX one_open_change_a_member ON rankd.rank_changes (rankee_id) WHERE state IN ('pending', 'unknown');
  CREATE UNIQUE INDEX one_change_an_idempotency_key ON rankd.rank_changes (key_id, idempotency_key, group_title)
    WHERE idempotency_key IS NOT NULL;
  CREATE INDEX changes_by_time ON rankd.rank_changes (requested_at, top_rank);
  CREATE INDEX changes_of_a_member ON rankd.rank_changes (rankee_id, seq);
  CREATE INDEX changes_by_a_key ON rankd.rank_changes (key_id, seq);
  CREATE INDEX changes_of_an_undo ON rankd.rank_changes (undo_id) WHERE undo_id IS NOT NULL;
  CREATE INDEX written_to_a_member ON rankd.rank_changes (rankee_id, seq)
    WHERE NOT dry_run AND (phase = 'compensate' OR roles_before <> roles_after);
  CREATE INDEX changes_by_a_ranker ON rankd.rank_changes (ranker_id, seq)
    WHERE NOT dry_run AND roles_before <> roles_after;
  CREATE INDEX demotions ON rankd.rank_changes (requested_at, rankee_id, key_id)
    WHERE demotion AND NOT dry_run AND roles_before <> roles_after;
  CREATE INDEX privileged_changes ON rankd.rank_changes (requested_at, rankee_id, key_id)
    WHERE privileged AND NOT dry_run AND roles_before <> roles_after;
  CREATE INDEX changes_by_member_name ON rankd.rank_changes (lower(rankee_name) text_pattern_ops);
  CREATE INDEX changes_asked_by ON rankd.rank_changes (ranker_id, seq);
  CREATE INDEX changes_at_a_place ON rankd.rank_changes (place_id, seq) WHERE place_id IS NOT NULL;
  CREATE INDEX changes_not_applied ON rankd.rank_changes (state, seq) WHERE state <> 'applied';

  CREATE TABLE rankd.holds (
    seq              bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id               text     NOT NULL UNIQUE,
    group_title      text     NOT NULL,
    kind             text     NOT NULL CHECK (kind IN ('suspension', 'temporary')),
    state            text     NOT NULL
      CHECK (state IN ('active', 'ending', 'ended', 'lifted', 'superseded', 'forfeited', 'stuck')),
    rankee_id        bigint   NOT NULL,
    rankee_name      text     NOT NULL,
    roles_before     text     NOT NULL,
    roles_during     text     NOT NULL,
    change_id        text     NOT NULL,
    return_change_id text,
    ranker_id        bigint   NOT NULL,
    ranker_name      text     NOT NULL,
    reason           text,
    done_by          text     NOT NULL,
    key_id           text,
    place_id         bigint,
    begins_at        bigint   NOT NULL,
    ends_at          bigint,
    ended_at         bigint,
    away_since       bigint,
    tries            integer  NOT NULL,
    next_try_at      bigint,
    code             text,
    message          text     NOT NULL
  );
  CREATE UNIQUE INDEX one_open_hold_a_member ON rankd.holds (group_title, rankee_id)
    WHERE state IN ('active', 'ending', 'stuck');
  CREATE INDEX holds_of_a_member ON rankd.holds (rankee_id);
  CREATE INDEX suspensions_by_beginning ON rankd.holds (begins_at) WHERE kind = 'suspension';
  CREATE INDEX holds_by_end ON rankd.holds (ends_at) WHERE state IN ('active', 'stuck');

  CREATE UNLOGGED TABLE rankd.member_queue (
    seq       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rankee_id bigint NOT NULL,
    node      text   NOT NULL
  );
  -- An unlogged sequence can't be read on PostgreSQL 15 once a standby became the primary.
  ALTER SEQUENCE rankd.member_queue_seq_seq SET LOGGED;
  CREATE INDEX queue_of_a_member ON rankd.member_queue (rankee_id, seq);

  CREATE UNLOGGED TABLE rankd.limit_counts (
    name        text             PRIMARY KEY,
    tokens      double precision NOT NULL,
    at          bigint           NOT NULL,
    burst       double precision NOT NULL,
    per_ms      double precision NOT NULL,
    was_allowed boolean          NOT NULL
  );

  CREATE UNLOGGED TABLE rankd.idempotency_claims (
    key_id          text NOT NULL,
    idempotency_key text NOT NULL,
    group_title     text NOT NULL,
    fingerprint     text NOT NULL,
    node            text NOT NULL,
    PRIMARY KEY (key_id, idempotency_key, group_title)
  );
  CREATE INDEX claims_of_a_node ON rankd.idempotency_claims (node);

  CREATE TABLE rankd.platform_budget (
    credential text   NOT NULL,
    operation  text   NOT NULL,
    version    bigint NOT NULL,
    account    text   NOT NULL,
    set_by     text   NOT NULL,
    PRIMARY KEY (credential, operation)
  ) WITH (fillfactor = 50);

  CREATE TABLE rankd.audit_events (
    id      bigint PRIMARY KEY,
    at      bigint NOT NULL,
    done_by text   NOT NULL,
    action  text   NOT NULL,
    subject text   NOT NULL,
    key_id  text,
    detail  text   NOT NULL,
    hash    bytea  NOT NULL CHECK (length(hash) = 32)
  );
  CREATE INDEX backups ON rankd.audit_events (id) WHERE action = 'database.backup';
  CREATE TABLE rankd.audit_people (
    event_id bigint NOT NULL,
    field    text   NOT NULL,
    user_id  bigint NOT NULL,
    salt     text,
    PRIMARY KEY (event_id, field)
  );
  CREATE INDEX events_about_a_person ON rankd.audit_people (user_id);

  CREATE TABLE rankd.audit_head (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    last_id bigint  NOT NULL,
    hash    bytea   NOT NULL CHECK (length(hash) = 32)
  );
  INSERT INTO rankd.audit_head (last_id, hash) VALUES (0, decode(repeat('00', 32), 'hex'));
  CREATE TABLE rankd.audit_anchor (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    last_id bigint  NOT NULL,
    hash    bytea   NOT NULL CHECK (length(hash) = 32)
  );
  INSERT INTO rankd.audit_anchor (last_id, hash) VALUES (0, decode(repeat('00', 32), 'hex'));

  CREATE FUNCTION rankd.audit_refuses() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION '%', TG_ARGV[0]; END $$;
  CREATE FUNCTION rankd.audit_only_grows_at_its_end() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW.id <= (SELECT greatest(coalesce(max(id), 0), (SELECT last_id FROM rankd.audit_anchor)) FROM rankd.audit_events)
      THEN RAISE EXCEPTION 'audit events are only added at the end'; END IF;
      RETURN NEW;
    END $$;
  CREATE FUNCTION rankd.audit_is_never_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF OLD.id > (SELECT last_id FROM rankd.audit_anchor)
      THEN RAISE EXCEPTION 'audit events are never deleted'; END IF;
      RETURN OLD;
    END $$;
  CREATE FUNCTION rankd.audit_anchor_moves_along_the_chain() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NOT EXISTS (SELECT 1 FROM rankd.audit_events WHERE id = NEW.last_id AND hash = NEW.hash)
      THEN RAISE EXCEPTION 'the audit is anchored to one of its own events'; END IF;
      RETURN NEW;
    END $$;
  CREATE TRIGGER audit_only_grows_at_its_end BEFORE INSERT ON rankd.audit_events
    FOR EACH ROW EXECUTE FUNCTION rankd.audit_only_grows_at_its_end();
  CREATE TRIGGER audit_is_never_edited BEFORE UPDATE ON rankd.audit_events
    FOR EACH ROW EXECUTE FUNCTION rankd.audit_refuses('audit events are never edited');
  CREATE TRIGGER audit_is_never_deleted BEFORE DELETE ON rankd.audit_events
    FOR EACH ROW EXECUTE FUNCTION rankd.audit_is_never_deleted();
  CREATE TRIGGER audit_is_never_emptied BEFORE TRUNCATE ON rankd.audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION rankd.audit_refuses('audit events are never deleted');
  CREATE TRIGGER audit_anchor_is_one_row BEFORE INSERT OR DELETE OR TRUNCATE ON rankd.audit_anchor
    FOR EACH STATEMENT EXECUTE FUNCTION rankd.audit_refuses('the audit has one anchor, and keeps it');
  CREATE TRIGGER audit_anchor_moves_along_the_chain BEFORE UPDATE ON rankd.audit_anchor
    FOR EACH ROW EXECUTE FUNCTION rankd.audit_anchor_moves_along_the_chain();
  CREATE TRIGGER audit_head_is_one_row BEFORE INSERT OR DELETE OR TRUNCATE ON rankd.audit_head
    FOR EACH STATEMENT EXECUTE FUNCTION rankd.audit_refuses('the audit has one head, and keeps it');

  CREATE TABLE rankd.base_roles (
    group_title text   PRIMARY KEY,
    role_id     bigint NOT NULL
  );
  CREATE TABLE rankd.served_group (
    one_row     boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    group_title text    NOT NULL,
    config_file text
  );
  CREATE TABLE rankd.group_roles (
    group_title text    NOT NULL,
    role_id     bigint  NOT NULL,
    name        text    NOT NULL,
    rank        integer NOT NULL,
    PRIMARY KEY (group_title, role_id)
  );
  CREATE TABLE rankd.user_names (
    user_id  bigint PRIMARY KEY,
    name     text,
    found_at bigint NOT NULL
  );

  CREATE TABLE rankd.discord_people (
    discord_id text   PRIMARY KEY,
    salt       text   NOT NULL,
    user_id    bigint,
    linked_by  text,
    linked_at  bigint
  );
  CREATE INDEX discord_people_of_a_user ON rankd.discord_people (user_id) WHERE user_id IS NOT NULL;

  CREATE TABLE rankd.erasure_requests (
    id           text   PRIMARY KEY,
    user_id      bigint NOT NULL,
    requested_at bigint NOT NULL,
    received_at  bigint NOT NULL,
    done_at      bigint
  );
  CREATE INDEX waiting_erasures ON rankd.erasure_requests (user_id) WHERE done_at IS NULL;

  CREATE TABLE rankd.webhooks (
    seq              bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id               text    NOT NULL UNIQUE,
    name             text    NOT NULL UNIQUE,
    kind             text    NOT NULL CHECK (kind IN ('standard', 'discord')),
    shown            text    NOT NULL,
    address          text,
    address_hash     text,
    secret           text,
    old_secret       text,
    old_secret_until bigint,
    events           text    NOT NULL,
    mention          text,
    is_for_games     boolean,
    state            text    NOT NULL CHECK (state IN ('enabled', 'disabled')),
    why              text,
    cursor           bigint  NOT NULL,
    alarm_cursor     bigint  NOT NULL,
    created_at       bigint  NOT NULL,
    declared_in      text,
    failing_since    bigint,
    failed_tries     integer NOT NULL,
    last_ok_at       bigint,
    last_error       text,
    held_until       bigint
  );
  CREATE TABLE rankd.webhook_deliveries (
    webhook_id  text    NOT NULL REFERENCES rankd.webhooks (id) ON DELETE CASCADE,
    sequence    bigint  NOT NULL,
    type        text    NOT NULL,
    state       text    NOT NULL CHECK (state IN ('waiting', 'delivered', 'failed')),
    tries       integer NOT NULL,
    status      integer,
    error       text,
    next_try_at bigint,
    first_at    bigint  NOT NULL,
    last_at     bigint  NOT NULL,
    PRIMARY KEY (webhook_id, sequence)
  );
  CREATE INDEX waiting_deliveries ON rankd.webhook_deliveries (webhook_id, sequence) WHERE state = 'waiting';

  CREATE TABLE rankd.webhook_declarations (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    node       text   NOT NULL REFERENCES rankd.nodes (id) ON DELETE CASCADE,
    name       text   NOT NULL,
    definition text   NOT NULL,
    UNIQUE (node, name)
  );
  CREATE TABLE rankd.login_links (
    hash         text    PRIMARY KEY,
    made_by      text    NOT NULL,
    is_view_only boolean NOT NULL,
    life_ms      bigint  NOT NULL,
    expires_at   bigint  NOT NULL
  );

  CREATE TABLE rankd.role_meanings (
    group_title text NOT NULL,
    setting     text NOT NULL,
    entry       text NOT NULL,
    roles       text NOT NULL,
    told        text,
    PRIMARY KEY (group_title, setting, entry)
  );
`,
  },
];
