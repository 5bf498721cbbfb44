//! PostgreSQL by hand: the tables and statements of the prototype that was fastest while it still
//! leased its rows.

use bytes::Bytes;
use sqlx::postgres::{PgConnection, PgPoolOptions, PgRow};
use sqlx::{PgPool, Postgres, Row as _};

use crate::Result;
use crate::database::{Dialect, RawMessage, Row, Sync, Target};

const CLAIM: &str =
    "UPDATE ideal SET claimed_by = $2, claimed_until = now() + interval '30 s', attempts = attempts + 1
     WHERE id IN (SELECT id FROM ideal
                  WHERE dispatched_at IS NULL AND next_attempt_at <= now()
                    AND (claimed_until IS NULL OR claimed_until < now())
                  ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED)
     RETURNING id, subject, headers, body";

const INSERT_MESSAGE: &str =
    "INSERT INTO trellis_outbox (id, kind, name, subject, headers, body, enqueued_at)
     VALUES ($1, 'event.v1', 'orders.placed', 'events.v1.orders.placed', $2, $3,
             (extract(epoch from statement_timestamp()) * 1000)::bigint)";

impl Dialect for Postgres {
    const TABLES: &'static [&'static str] = &[
        "CREATE TABLE business (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer TEXT NOT NULL, amount BIGINT NOT NULL)",
        "CREATE TABLE template (id TEXT, kind TEXT, name TEXT, subject TEXT, headers TEXT, body BYTEA, enqueued_at BIGINT)",
        "CREATE TABLE ideal (
            id TEXT PRIMARY KEY,
            seq BIGINT GENERATED ALWAYS AS IDENTITY,
            subject TEXT NOT NULL,
            body BYTEA NOT NULL,
            headers TEXT NOT NULL,
            created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
            next_attempt_at TIMESTAMPTZ NOT NULL DEFAULT now(),
            attempts INT NOT NULL DEFAULT 0,
            claimed_by TEXT,
            claimed_until TIMESTAMPTZ,
            dispatched_at TIMESTAMPTZ)",
        "CREATE INDEX ideal_pending ON ideal (seq) WHERE dispatched_at IS NULL",
    ];
    const FILL_OURS: &'static str =
        "INSERT INTO trellis_outbox (id, kind, name, subject, headers, body, enqueued_at)
         SELECT new.id, t.kind, t.name, t.subject, replace(t.headers, t.id, new.id), t.body, t.enqueued_at
         FROM template t, (SELECT lpad(n::text, 26, '0') AS id FROM generate_series(1, $1) n ORDER BY n) new";
    const FILL_IDEAL: &'static str = "INSERT INTO ideal (id, subject, headers, body)
         SELECT new.id, t.subject, replace(t.headers, t.id, new.id), t.body
         FROM template t, (SELECT lpad(n::text, 26, '0') AS id FROM generate_series(1, $1) n ORDER BY n) new";
    const TIDY: &'static [&'static str] =
        &["VACUUM ANALYZE trellis_outbox", "VACUUM ANALYZE ideal", "CHECKPOINT"];

    async fn open(target: &Target, _: Sync, connections: u32) -> Result<PgPool> {
        let options = PgPoolOptions::new().max_connections(connections).min_connections(connections);
        Ok(options.connect(&target.postgres).await?)
    }

    async fn version(target: &Target) -> Result<String> {
        let pool = Self::open(target, Sync::Full, 1).await?;
        Ok(sqlx::query_scalar("SHOW server_version").fetch_one(&pool).await?)
    }

    async fn execute(pool: &PgPool, sql: &'static str) -> Result<()> {
        sqlx::query(sql).execute(pool).await?;
        Ok(())
    }

    async fn fill(pool: &PgPool, sql: &'static str, rows: u32) -> Result<()> {
        sqlx::query(sql).bind(i64::from(rows)).execute(pool).await?;
        Ok(())
    }

    async fn count(pool: &PgPool, sql: &'static str) -> Result<i64> {
        Ok(sqlx::query_scalar(sql).fetch_one(pool).await?)
    }

    async fn claim(pool: &PgPool, rows: i64) -> Result<Vec<Row>> {
        let claimed = sqlx::query(CLAIM).bind(rows).bind("me").fetch_all(pool).await?;
        claimed.iter().map(row).collect()
    }

    async fn delete(pool: &PgPool, ids: Vec<String>) -> Result<()> {
        sqlx::query("DELETE FROM ideal WHERE id = ANY($1)").bind(ids).execute(pool).await?;
        Ok(())
    }

    async fn mark(pool: &PgPool, id: &str) -> Result<()> {
        const MARK: &str = "UPDATE ideal SET dispatched_at = now(), claimed_by = NULL WHERE id = $1";
        sqlx::query(MARK).bind(id).execute(pool).await?;
        Ok(())
    }

    async fn commit_raw(pool: &PgPool, message: RawMessage) -> Result<()> {
        let mut tx = pool.begin().await?;
        Self::insert_business(&mut tx).await?;
        let insert = sqlx::query(INSERT_MESSAGE).bind(message.id).bind(message.headers).bind(message.body);
        insert.execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn insert_business(connection: &mut PgConnection) -> Result<()> {
        sqlx::query("INSERT INTO business (customer, amount) VALUES ('c', 1)").execute(connection).await?;
        Ok(())
    }
}

fn row(row: &PgRow) -> Result<Row> {
    Ok(Row {
        id: row.try_get(0)?,
        subject: row.try_get(1)?,
        headers: row.try_get(2)?,
        body: Bytes::from(row.try_get::<Vec<u8>, _>(3)?),
    })
}
