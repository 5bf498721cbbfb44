-- Messages to be sent. Written in the transaction that changes the state they tell of.
CREATE TABLE {outbox} (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY,
    id          TEXT     NOT NULL PRIMARY KEY,
    kind        TEXT     NOT NULL,
    name        TEXT     NOT NULL,
    subject     TEXT     NOT NULL,
    headers     TEXT     NOT NULL,
    body        BYTEA    NOT NULL,
    order_key   TEXT,
    state       TEXT     NOT NULL DEFAULT 'pending',
    -- Waits behind an earlier row of its key.
    held        BOOLEAN  NOT NULL DEFAULT FALSE,
    attempts    INTEGER  NOT NULL DEFAULT 0,
    token       TEXT,
    due_at      BIGINT,
    enqueued_at BIGINT   NOT NULL,
    reason      TEXT
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
-- A claim walks these two only, so never over leased, waiting or dead rows.
CREATE INDEX {outbox}_pending ON {outbox} (kind, seq) WHERE state = 'pending' AND NOT held;
CREATE INDEX {outbox}_due ON {outbox} (due_at) WHERE state IN ('leased', 'failed');
-- Finds the first row of a key.
CREATE INDEX {outbox}_key ON {outbox} (order_key, seq) WHERE order_key IS NOT NULL;
CREATE INDEX {outbox}_held ON {outbox} (order_key) WHERE held;
CREATE INDEX {outbox}_dead ON {outbox} (seq) WHERE state = 'dead';
-- Deliveries whose effect is committed, one row per consumer and root id.
CREATE TABLE {inbox} (
    consumer   TEXT   NOT NULL,
    root_id    TEXT   NOT NULL,
    result     TEXT,
    handled_at BIGINT NOT NULL,
    PRIMARY KEY (consumer, root_id)
);
