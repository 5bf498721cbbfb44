-- The table of the receipts worker, in words that SQLite and PostgreSQL both understand.

-- One row per receipt that was sent. On purpose there is no unique constraint on the order id: that
-- one order has one receipt is the work of the job and of the inbox.
CREATE TABLE IF NOT EXISTS receipts (
    order_id    TEXT   NOT NULL,
    job_id      TEXT   NOT NULL,
    email       TEXT   NOT NULL,
    total_cents BIGINT NOT NULL,
    mail        BIGINT NOT NULL
);
