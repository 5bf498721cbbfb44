//! A service's database, read by somebody who is not the service.
use std::fmt;
use std::time::Duration;

use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{ColumnIndex, Decode, Row, Type};

/// Which database the services keep their state in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file each.
    Sqlite,
    /// A database each on one server.
    Postgres,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        })
    }
}

/// A connection to one service's database. Every column is read as text, which both can be asked for.
#[derive(Debug, Clone)]
pub enum Database {
    /// A file.
    Sqlite(SqlitePool),
    /// A database.
    Postgres(PgPool),
}

impl Database {
    /// Connect to a database that a service has made.
    ///
    /// # Errors
    /// There is none.
    pub async fn open(url: &str) -> sqlx::Result<Self> {
        if url.starts_with("sqlite:") {
            let options: SqliteConnectOptions = url.parse()?;
            let pool = SqlitePoolOptions::new().max_connections(1);
            return pool.connect_with(options.busy_timeout(Duration::from_secs(10))).await.map(Self::Sqlite);
        }
        PgPoolOptions::new().max_connections(1).connect(url).await.map(Self::Postgres)
    }

    /// The rows of a query with `N` text columns.
    ///
    /// # Errors
    /// The database refused, or a column is null or no text.
    pub async fn rows<const N: usize>(&self, sql: &'static str) -> sqlx::Result<Vec<[String; N]>> {
        match self {
            Self::Sqlite(pool) => sqlx::query(sql).fetch_all(pool).await?.iter().map(texts).collect(),
            Self::Postgres(pool) => sqlx::query(sql).fetch_all(pool).await?.iter().map(texts).collect(),
        }
    }

    /// The one number that a query yields.
    ///
    /// # Errors
    /// The database refused, or it is no number.
    pub async fn number(&self, sql: &'static str) -> sqlx::Result<u64> {
        let rows = self.rows::<1>(sql).await?;
        let [number] = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        number.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))
    }

    /// For how long the lease of the row that has waited longest is over.
    ///
    /// # Errors
    /// The database refused.
    pub async fn longest_overdue(&self) -> sqlx::Result<Duration> {
        let ms = self.number(match self {
            Self::Sqlite(_) => {
                "SELECT CAST(coalesce(max(0, max(CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER) - due_at)), 0) AS TEXT) FROM trellis_outbox WHERE state = 'leased'"
            }
            Self::Postgres(_) => {
                "SELECT CAST(coalesce(greatest(0, max(CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) - due_at)), 0) AS TEXT) FROM trellis_outbox WHERE state = 'leased'"
            }
        });
        ms.await.map(Duration::from_millis)
    }

    /// What the database says of its version.
    ///
    /// # Errors
    /// The database refused.
    pub async fn version(&self) -> sqlx::Result<String> {
        let rows = self.rows::<1>(match self {
            Self::Sqlite(_) => "SELECT sqlite_version()",
            Self::Postgres(_) => "SELECT current_setting('server_version')",
        });
        Ok(rows.await?.into_iter().map(|[version]| version).collect())
    }

    /// Disconnect.
    pub async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

fn texts<R: Row, const N: usize>(row: &R) -> sqlx::Result<[String; N]>
where
    usize: ColumnIndex<R>,
    String: for<'r> Decode<'r, R::Database> + Type<R::Database>,
{
    let mut texts = [const { String::new() }; N];
    for (column, text) in texts.iter_mut().enumerate() {
        *text = row.try_get(column)?;
    }
    Ok(texts)
}
