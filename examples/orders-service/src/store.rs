//! The SQL of this service, behind a trait of its own, because it runs on two databases.
//!
//! A service with one database needs no such trait: it writes its queries where it uses them.
use orders_contract::orders::OrderCreated;
use sqlx::migrate::Migrate;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{Pool, Postgres, Result, Row, Sqlite, SqlitePool};
use trellis_runtime::Database;

/// A database that orders can be kept in.
pub(crate) trait Store: Database<Connection: Migrate> {
    /// Connect, and make the tables that are missing.
    async fn open(url: &str) -> Result<Pool<Self>>;

    /// Take the next of `lines` lines; `None` when all are done. Undone with the transaction.
    async fn take_line(tx: &mut Self::Connection, lines: usize) -> Result<Option<usize>>;

    /// False when an order with this id exists.
    async fn insert_order(tx: &mut Self::Connection, line: usize, order: &OrderCreated) -> Result<bool>;

    /// Record that a line is no order.
    async fn insert_refusal(tx: &mut Self::Connection, line: usize, reason: &str, detail: &str)
    -> Result<()>;
}

const SCHEMA: &str = include_str!("schema.sql");
const TAKE_LINE: &str =
    "UPDATE progress SET lines_done = lines_done + 1 WHERE lines_done < $1 RETURNING lines_done - 1";
const INSERT_ORDER: &str = "INSERT INTO orders (order_id, line, customer_id, region, sku, quantity, total_cents) \
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (order_id) DO NOTHING";
const INSERT_REFUSAL: &str = "INSERT INTO refusals (line, reason, detail) VALUES ($1, $2, $3)";

/// The statements are the same text on both databases, but of different types.
macro_rules! statements {
    () => {
        async fn take_line(tx: &mut Self::Connection, lines: usize) -> Result<Option<usize>> {
            let taken = sqlx::query(TAKE_LINE).bind(integer(lines)?).fetch_optional(tx).await?;
            let taken: Option<i64> = taken.map(|row| row.try_get(0)).transpose()?;
            Ok(taken.and_then(|line| usize::try_from(line).ok()))
        }

        async fn insert_order(tx: &mut Self::Connection, line: usize, order: &OrderCreated) -> Result<bool> {
            let query = sqlx::query(INSERT_ORDER)
                .bind(&order.order_id)
                .bind(integer(line)?)
                .bind(&order.customer_id)
                .bind(&order.region)
                .bind(&order.sku)
                .bind(i64::from(order.quantity))
                .bind(integer(order.total_cents)?);
            Ok(query.execute(tx).await?.rows_affected() == 1)
        }

        async fn insert_refusal(
            tx: &mut Self::Connection,
            line: usize,
            reason: &str,
            detail: &str,
        ) -> Result<()> {
            let query = sqlx::query(INSERT_REFUSAL).bind(integer(line)?).bind(reason).bind(detail);
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
fn integer<T: TryInto<i64>>(number: T) -> Result<i64>
where
    T::Error: std::error::Error + Send + Sync + 'static,
{
    number.try_into().map_err(|error| sqlx::Error::Encode(Box::new(error)))
}
