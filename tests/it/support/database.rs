//! A migrated database of a test's own, of either kind.
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::Migrate;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Pool, Postgres, Sqlite};
use testbed::postgres::Cluster;
use trellis_runtime::{Database, SqlOutbox};

/// A database with Trellis' tables and a table `things (name)` for business rows.
pub struct Bed<D: Database> {
    pub pool: Pool<D>,
    pub url: String,
    _keep: Keep,
}

/// What must outlive the test.
#[expect(dead_code, reason = "held for its drop")]
enum Keep {
    File(tempfile::TempDir),
    Cluster(Arc<Cluster>),
}

pub trait TestDb: Database<Connection: Migrate> {
    /// A fresh database, not migrated.
    fn empty(connections: u32) -> impl Future<Output = Bed<Self>> + Send;
    fn execute(pool: &Pool<Self>, sql: &str) -> impl Future<Output = u64> + Send;
    fn run(conn: &mut Self::Connection, sql: &str) -> impl Future<Output = sqlx::Result<()>> + Send;
    fn number(pool: &Pool<Self>, sql: &str) -> impl Future<Output = i64> + Send;
    fn text(pool: &Pool<Self>, sql: &str) -> impl Future<Output = Option<String>> + Send;
}

impl<D: TestDb> Bed<D> {
    pub async fn new(connections: u32) -> Self {
        let bed = D::empty(connections).await;
        trellis_runtime::migrate(&bed.pool).await.unwrap();
        D::execute(&bed.pool, "CREATE TABLE things (name TEXT NOT NULL)").await;
        bed
    }

    pub fn outbox(&self) -> SqlOutbox<D> {
        SqlOutbox::new(self.pool.clone()).unwrap()
    }

    pub async fn execute(&self, sql: &str) -> u64 {
        D::execute(&self.pool, sql).await
    }

    pub async fn number(&self, sql: &str) -> i64 {
        D::number(&self.pool, sql).await
    }

    pub async fn text(&self, sql: &str) -> Option<String> {
        D::text(&self.pool, sql).await
    }

    /// Rows in the outbox, whatever their state.
    pub async fn rows(&self) -> i64 {
        self.number("SELECT count(*) FROM trellis_outbox").await
    }

    pub async fn things(&self) -> i64 {
        self.number("SELECT count(*) FROM things").await
    }
}

impl TestDb for Sqlite {
    async fn empty(connections: u32) -> Bed<Self> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("test.db");
        let url = file.display().to_string();
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(Duration::from_secs(20));
        let pool = SqlitePoolOptions::new().max_connections(connections).connect_with(options).await.unwrap();
        Bed { pool, url, _keep: Keep::File(dir) }
    }

    async fn execute(pool: &Pool<Self>, sql: &str) -> u64 {
        sqlx::query(AssertSqlSafe(sql)).execute(pool).await.unwrap().rows_affected()
    }

    async fn run(conn: &mut Self::Connection, sql: &str) -> sqlx::Result<()> {
        sqlx::query(AssertSqlSafe(sql)).execute(conn).await.map(drop)
    }

    async fn number(pool: &Pool<Self>, sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(pool).await.unwrap()
    }

    async fn text(pool: &Pool<Self>, sql: &str) -> Option<String> {
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(pool).await.unwrap()
    }
}

impl TestDb for Postgres {
    async fn empty(connections: u32) -> Bed<Self> {
        let (cluster, url) = tokio::task::spawn_blocking(|| {
            let cluster = Cluster::shared().unwrap();
            let url = cluster.fresh_database().unwrap();
            (cluster, url)
        })
        .await
        .unwrap();
        let pool = PgPoolOptions::new().max_connections(connections).connect(&url).await.unwrap();
        Bed { pool, url, _keep: Keep::Cluster(cluster) }
    }

    async fn execute(pool: &Pool<Self>, sql: &str) -> u64 {
        sqlx::query(AssertSqlSafe(sql)).execute(pool).await.unwrap().rows_affected()
    }

    async fn run(conn: &mut Self::Connection, sql: &str) -> sqlx::Result<()> {
        sqlx::query(AssertSqlSafe(sql)).execute(conn).await.map(drop)
    }

    async fn number(pool: &Pool<Self>, sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(pool).await.unwrap()
    }

    async fn text(pool: &Pool<Self>, sql: &str) -> Option<String> {
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(pool).await.unwrap()
    }
}
