-- Jobs: a row whose outcome is decided stays for those who ask for it, in state 'dispatched'.
ALTER TABLE {outbox}
    -- The claim before the first send of a row, by the database's clock.
    ADD COLUMN first_sent_at BIGINT,
    ADD COLUMN decided_at    BIGINT,
    -- JSON with its format under "v".
    ADD COLUMN outcome       TEXT;
-- By kind, so that a claim that leaves one out does not walk over its rows.
DROP INDEX {outbox}_due;
CREATE INDEX {outbox}_due ON {outbox} (kind, due_at) WHERE state IN ('leased', 'failed');
-- Counts decided rows, and finds those that are old enough to go.
CREATE INDEX {outbox}_decided ON {outbox} (kind, decided_at) WHERE state = 'dispatched';
