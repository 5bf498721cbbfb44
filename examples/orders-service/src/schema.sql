-- The tables of the orders service, in words that SQLite and PostgreSQL both understand.

-- Orders that were accepted. The primary key is what refuses an order id that is used twice.
CREATE TABLE IF NOT EXISTS orders (
    order_id    TEXT   NOT NULL PRIMARY KEY,
    line        BIGINT NOT NULL,
    customer_id TEXT   NOT NULL,
    region      TEXT   NOT NULL,
    sku         TEXT   NOT NULL,
    quantity    BIGINT NOT NULL,
    total_cents BIGINT NOT NULL
);

-- Lines that were not accepted, and why.
CREATE TABLE IF NOT EXISTS refusals (
    line   BIGINT NOT NULL PRIMARY KEY,
    reason TEXT   NOT NULL,
    detail TEXT   NOT NULL
);

-- How far the file is placed: one row, changed in the transaction that places a line.
CREATE TABLE IF NOT EXISTS progress (
    one        BIGINT NOT NULL PRIMARY KEY,
    lines_done BIGINT NOT NULL
);
INSERT INTO progress (one, lines_done) VALUES (1, 0) ON CONFLICT DO NOTHING;
