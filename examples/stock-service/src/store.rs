//! The SQL of this service, behind a trait of its own, because it runs on two databases.
//!
//! A service with one database needs no such trait: it writes its queries where it uses them.
use std::future::Future;

use orders_contract::orders::OrderCreated;
use sqlx::migrate::Migrate;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{Pool, Postgres, Result, Sqlite, SqlitePool};
use trellis_runtime::Database;

/// A database that stock can be kept in. Handlers run in tasks, so its futures are `Send`.
pub(crate) trait Store: Database<Connection: Migrate> {
    /// Connect, and make the tables that are missing.
    fn open(url: &str) -> impl Future<Output = Result<Pool<Self>>> + Send;

    /// Put an article on the shelf, unless it was there before.
    fn deliver(pool: &Pool<Self>, sku: &str, quantity: u32) -> impl Future<Output = Result<()>> + Send;

    /// Take `quantity` off the shelf. False when not so many are left.
    fn take_stock(
        tx: &mut Self::Connection,
        sku: &str,
        quantity: u32,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Record what became of an order.
    fn insert_reservation(
        tx: &mut Self::Connection,
        order: &OrderCreated,
        reserved: bool,
    ) -> impl Future<Output = Result<()>> + Send;
}

const SCHEMA: &str = include_str!("schema.sql");
const DELIVER: &str =
    "INSERT INTO stock (sku, delivered, remaining) VALUES ($1, $2, $2) ON CONFLICT (sku) DO NOTHING";
const TAKE_STOCK: &str = "UPDATE stock SET remaining = remaining - $2 WHERE sku = $1 AND remaining >= $2";
const INSERT_RESERVATION: &str =
    "INSERT INTO reservations (order_id, sku, quantity, outcome) VALUES ($1, $2, $3, $4)";

/// The statements are the same text on both databases, but of different types.
macro_rules! statements {
    () => {
        async fn deliver(pool: &Pool<Self>, sku: &str, quantity: u32) -> Result<()> {
            let query = sqlx::query(DELIVER).bind(sku).bind(i64::from(quantity));
            query.execute(pool).await.map(drop)
        }

        async fn take_stock(tx: &mut Self::Connection, sku: &str, quantity: u32) -> Result<bool> {
            let query = sqlx::query(TAKE_STOCK).bind(sku).bind(i64::from(quantity));
            Ok(query.execute(tx).await?.rows_affected() == 1)
        }

        async fn insert_reservation(
            tx: &mut Self::Connection,
            order: &OrderCreated,
            reserved: bool,
        ) -> Result<()> {
            let query = sqlx::query(INSERT_RESERVATION)
                .bind(&order.order_id)
                .bind(&order.sku)
                .bind(i64::from(order.quantity))
                .bind(if reserved { "reserved" } else { "refused" });
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
