DELETE FROM {outbox} WHERE state = 'dispatched';
DROP INDEX {outbox}_decided;
DROP INDEX {outbox}_due;
CREATE INDEX {outbox}_due ON {outbox} (due_at) WHERE state IN ('leased', 'failed');
ALTER TABLE {outbox} DROP COLUMN first_sent_at;
ALTER TABLE {outbox} DROP COLUMN decided_at;
ALTER TABLE {outbox} DROP COLUMN outcome;
