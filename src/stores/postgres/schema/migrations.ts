import { tables } from '../../sql/schema.ts';

/**
 * The migrations, one for each schema version. Append only: never edit a released migration. `livesWith` is the oldest
 * schema version whose rankd can still use the database after the migration.
 *
 * In the shared `tables`, rows with a `seq` are inserted under the lock on the audit chain's head, so their numbers are
 * in commit order.
 */
export const migrations: ReadonlyArray<{ sql: string; livesWith: number }> = [
  {
    livesWith: 1,
    sql: `
  SET LOCAL search_path = rankd;
  ${tables({
    ...{ seq: 'bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY', eventId: 'bigint PRIMARY KEY' },
    ...{ oneRow: 'boolean PRIMARY KEY DEFAULT true CHECK (one_row)', long: 'bigint', bytes: 'bytea' },
    flag: (column) => `${column} boolean`,
    json: (column) => `${column} text`,
    ...{ rows: '', byKey: '', bySeq: ', seq', noHash: "decode(repeat('00', 32), 'hex')" },
    anyCase: (column) => `lower(${column}) text_pattern_ops`,
  })}

  CREATE TABLE rankd.schema_steps (
    version    integer PRIMARY KEY,
    lives_with integer NOT NULL,
    rankd      text    NOT NULL,
    at         bigint  NOT NULL
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

  CREATE UNLOGGED TABLE rankd.member_queue (
    seq       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rankee_id bigint NOT NULL,
    node      text   NOT NULL
  );
  -- An unlogged sequence can't be read on PostgreSQL 15 once a standby has become the primary.
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

  CREATE TABLE rankd.audit_head (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    last_id bigint  NOT NULL,
    hash    bytea   NOT NULL CHECK (length(hash) = 32)
  );
  INSERT INTO rankd.audit_head (last_id, hash) VALUES (0, decode(repeat('00', 32), 'hex'));
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

  CREATE TABLE rankd.webhook_declarations (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    node       text   NOT NULL REFERENCES rankd.nodes (id) ON DELETE CASCADE,
    name       text   NOT NULL,
    definition text   NOT NULL,
    UNIQUE (node, name)
  );
`,
  },
];
