-- The tables of the stock service, in words that SQLite and PostgreSQL both understand.

-- What is there, and what of it is not reserved yet.
CREATE TABLE IF NOT EXISTS stock (
    sku       TEXT   NOT NULL PRIMARY KEY,
    delivered BIGINT NOT NULL,
    remaining BIGINT NOT NULL CHECK (remaining >= 0)
);

-- One row per order: `reserved`, or `refused` because not enough was left. On purpose there is no
-- unique constraint on the order id: that one order has one row is the work of the inbox.
CREATE TABLE IF NOT EXISTS reservations (
    order_id TEXT   NOT NULL,
    sku      TEXT   NOT NULL,
    quantity BIGINT NOT NULL,
    outcome  TEXT   NOT NULL
);
