//! The SQL of this process, behind a trait of its own, because it runs on two databases.
//!
//! A service with one database needs no such trait: it writes its queries where it uses them.
use std::future::Future;

use orders_contract::orders::SendReceipt;
use sqlx::migrate::Migrate;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{Pool, Postgres, Result, Sqlite, SqlitePool};
use trellis::JobId;
use trellis_runtime::Database;

/// A database that receipts can be kept in. Handlers run in tasks, so its futures are `Send`.
pub(crate) trait Store: Database<Connection: Migrate> {
    /// Connect, and make the table if it is missing.
    fn open(url: &str) -> impl Future<Output = Result<Pool<Self>>> + Send;

    /// Record that a receipt was sent.
    fn insert_receipt(
        tx: &mut Self::Connection,
        job: &JobId,
        receipt: &SendReceipt,
        mail: u64,
    ) -> impl Future<Output = Result<()>> + Send;
}

const SCHEMA: &str = include_str!("schema.sql");
const INSERT_RECEIPT: &str =
    "INSERT INTO receipts (order_id, job_id, email, total_cents, mail) VALUES ($1, $2, $3, $4, $5)";

/// The statements are the same text on both databases, but of different types.
macro_rules! statements {
    () => {
        async fn insert_receipt(
            tx: &mut Self::Connection,
            job: &JobId,
            receipt: &SendReceipt,
            mail: u64,
        ) -> Result<()> {
            let query = sqlx::query(INSERT_RECEIPT)
                .bind(&receipt.order_id)
                .bind(job.as_str())
                .bind(&receipt.email)
                .bind(integer(receipt.total_cents)?)
                .bind(integer(mail)?);
            query.execute(tx).await.map(drop)
        }
    };
}

impl Store for Sqlite {
    async fn open(url: &str) -> Result<Pool<Self>> {
        let options: SqliteConnectOptions = url.parse()?;
        let options = options.create_if_missing(true).journal_mode(SqliteJournalMode::Wal);
        let pool = SqlitePool::connect_with(options).await?;
        sqlx::raw_sql(SCHEMA).execute(&pool).await?;
        Ok(pool)
    }

    statements!();
}

impl Store for Postgres {
    async fn open(url: &str) -> Result<Pool<Self>> {
        let pool = PgPoolOptions::new().max_connections(10).connect(url).await?;
        sqlx::raw_sql(SCHEMA).execute(&pool).await?;
        Ok(pool)
    }

    statements!();
}

/// SQL has no unsigned integers.
fn integer(number: u64) -> Result<i64> {
    number.try_into().map_err(|error| sqlx::Error::Encode(Box::new(error)))
}
