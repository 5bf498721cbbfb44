//! SQLite by hand: the tables and statements of the prototype.

use std::time::Duration;

use bytes::Bytes;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{Row as _, Sqlite, SqlitePool};

use crate::Result;
use crate::database::{Dialect, RawMessage, Row, Sync, Target};

const CLAIM: &str = "UPDATE ideal SET claimed_by = ?2, claimed_until = ?3 + 30000, attempts = attempts + 1
     WHERE seq IN (SELECT seq FROM ideal
                   WHERE dispatched_at IS NULL AND next_attempt_at <= ?3
                     AND (claimed_until IS NULL OR claimed_until < ?3)
                   ORDER BY seq LIMIT ?1)
     RETURNING id, subject, headers, body";
/// The time by which the loop claims: later than any row is due.
const SOME_TIME: i64 = 1000;

const INSERT_MESSAGE: &str =
    "INSERT INTO trellis_outbox (id, kind, name, subject, headers, body, enqueued_at)
     VALUES (?1, 'event.v1', 'orders.placed', 'events.v1.orders.placed', ?2, ?3,
             CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER))";

impl Dialect for Sqlite {
    const TABLES: &'static [&'static str] = &[
        "CREATE TABLE business (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, amount INTEGER NOT NULL)",
        "CREATE TABLE template (id TEXT, kind TEXT, name TEXT, subject TEXT, headers TEXT, body BLOB, enqueued_at INTEGER)",
        "CREATE TABLE ideal (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            subject TEXT NOT NULL,
            body BLOB NOT NULL,
            headers TEXT NOT NULL,
            created_at INTEGER NOT NULL DEFAULT 0,
            next_attempt_at INTEGER NOT NULL DEFAULT 0,
            attempts INTEGER NOT NULL DEFAULT 0,
            claimed_by TEXT,
            claimed_until INTEGER,
            dispatched_at INTEGER)",
        "CREATE INDEX ideal_pending ON ideal (seq) WHERE dispatched_at IS NULL",
    ];
    const FILL_OURS: &'static str = "WITH RECURSIVE new (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM new WHERE n < ?1)
         INSERT INTO trellis_outbox (id, kind, name, subject, headers, body, enqueued_at)
         SELECT printf('%026d', n), kind, name, subject, replace(headers, id, printf('%026d', n)), body, enqueued_at
         FROM new, template";
    const FILL_IDEAL: &'static str =
        "WITH RECURSIVE new (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM new WHERE n < ?1)
         INSERT INTO ideal (id, subject, headers, body)
         SELECT printf('%026d', n), subject, replace(headers, id, printf('%026d', n)), body
         FROM new, template";
    const TIDY: &'static [&'static str] = &["PRAGMA wal_checkpoint(TRUNCATE)"];

    async fn open(target: &Target, sync: Sync, _: u32) -> Result<SqlitePool> {
        let synchronous = match sync {
            Sync::Full => SqliteSynchronous::Full,
            Sync::Normal => SqliteSynchronous::Normal,
        };
        let connect = SqliteConnectOptions::new()
            .filename(&target.sqlite)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(synchronous)
            .busy_timeout(Duration::from_secs(10));
        let options = SqlitePoolOptions::new().max_connections(1).min_connections(1);
        Ok(options.connect_with(connect).await?)
    }

    async fn version(target: &Target) -> Result<String> {
        let pool = Self::open(target, Sync::Full, 1).await?;
        Ok(sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&pool).await?)
    }

    async fn execute(pool: &SqlitePool, sql: &'static str) -> Result<()> {
        sqlx::query(sql).execute(pool).await?;
        Ok(())
    }

    async fn fill(pool: &SqlitePool, sql: &'static str, rows: u32) -> Result<()> {
        sqlx::query(sql).bind(i64::from(rows)).execute(pool).await?;
        Ok(())
    }

    async fn count(pool: &SqlitePool, sql: &'static str) -> Result<i64> {
        Ok(sqlx::query_scalar(sql).fetch_one(pool).await?)
    }

    async fn claim(pool: &SqlitePool, rows: i64) -> Result<Vec<Row>> {
        let claimed = sqlx::query(CLAIM).bind(rows).bind("me").bind(SOME_TIME).fetch_all(pool).await?;
        claimed.iter().map(row).collect()
    }

    async fn delete(pool: &SqlitePool, ids: Vec<String>) -> Result<()> {
        const DELETE: &str = "DELETE FROM ideal WHERE id IN (SELECT value FROM json_each(?1))";
        sqlx::query(DELETE).bind(serde_json::to_string(&ids)?).execute(pool).await?;
        Ok(())
    }

    async fn mark(pool: &SqlitePool, id: &str) -> Result<()> {
        sqlx::query("UPDATE ideal SET dispatched_at = 1 WHERE id = ?1").bind(id).execute(pool).await?;
        Ok(())
    }

    async fn commit_raw(pool: &SqlitePool, message: RawMessage) -> Result<()> {
        let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
        Self::insert_business(&mut tx).await?;
        let insert = sqlx::query(INSERT_MESSAGE).bind(message.id).bind(message.headers).bind(message.body);
        insert.execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn insert_business(connection: &mut SqliteConnection) -> Result<()> {
        sqlx::query("INSERT INTO business (customer, amount) VALUES ('c', 1)").execute(connection).await?;
        Ok(())
    }
}

fn row(row: &SqliteRow) -> Result<Row> {
    Ok(Row {
        id: row.try_get(0)?,
        subject: row.try_get(1)?,
        headers: row.try_get(2)?,
        body: Bytes::from(row.try_get::<Vec<u8>, _>(3)?),
    })
}
