-- Messages to be sent. Written in the transaction that changes the state they tell of.
CREATE TABLE {outbox} (
    seq         INTEGER PRIMARY KEY,
    id          TEXT    NOT NULL UNIQUE,
    kind        TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    headers     TEXT    NOT NULL,
    body        BLOB    NOT NULL,
    order_key   TEXT,
    state       TEXT    NOT NULL DEFAULT 'pending',
    -- Waits behind an earlier row of its key.
    held        INTEGER NOT NULL DEFAULT 0,
    attempts    INTEGER NOT NULL DEFAULT 0,
    token       TEXT,
    due_at      INTEGER,
    enqueued_at INTEGER NOT NULL,
    reason      TEXT
);
-- A claim walks these two only, so never over leased, waiting or dead rows.
CREATE INDEX {outbox}_pending ON {outbox} (kind, seq) WHERE state = 'pending' AND held = 0;
CREATE INDEX {outbox}_due ON {outbox} (due_at) WHERE state IN ('leased', 'failed');
-- Finds the first row of a key.
CREATE INDEX {outbox}_key ON {outbox} (order_key, seq) WHERE order_key IS NOT NULL;
CREATE INDEX {outbox}_held ON {outbox} (order_key) WHERE held = 1;
CREATE INDEX {outbox}_dead ON {outbox} (seq) WHERE state = 'dead';
-- Deliveries whose effect is committed, one row per consumer and root id.
CREATE TABLE {inbox} (
    consumer   TEXT    NOT NULL,
    root_id    TEXT    NOT NULL,
    result     TEXT,
    handled_at INTEGER NOT NULL,
    PRIMARY KEY (consumer, root_id)
) WITHOUT ROWID;
