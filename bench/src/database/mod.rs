//! The databases, each with the tables and statements of the hand-written loops.

mod postgres;
mod sqlite;

use std::future::Future;
use std::path::PathBuf;

use bytes::Bytes;
use sqlx::Pool;
use sqlx::migrate::Migrate;

use crate::Result;

/// Where a fresh database may be made.
pub(crate) struct Target {
    /// The URL of an empty database.
    pub(crate) postgres: String,
    /// A file that does not exist.
    pub(crate) sqlite: PathBuf,
}

/// Whether SQLite waits for the disk at each commit. PostgreSQL always does here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    Full,
    Normal,
}

/// A row as the hand-written loops claim it.
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) subject: String,
    pub(crate) headers: String,
    pub(crate) body: Bytes,
}

/// What a raw transaction writes beside its business row.
pub(crate) struct RawMessage {
    pub(crate) id: String,
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
}

/// One database: how it is opened, filled and relayed from by hand.
pub(crate) trait Dialect: trellis_runtime::Database<Connection: Migrate> {
    /// Tables: `ideal` for the loops, `business` for transactions, `template` for one message.
    const TABLES: &'static [&'static str];
    /// Copy the template often, into our table.
    const FILL_OURS: &'static str;
    /// The same for the loops' table.
    const FILL_IDEAL: &'static str;
    /// Make a table of bulk-loaded rows look as if it had been in use for a while.
    const TIDY: &'static [&'static str];

    /// A pool whose connections are all open: `connections`, or one where one writes at a time anyway.
    fn open(target: &Target, sync: Sync, connections: u32)
    -> impl Future<Output = Result<Pool<Self>>> + Send;
    fn version(target: &Target) -> impl Future<Output = Result<String>> + Send;

    fn execute(pool: &Pool<Self>, sql: &'static str) -> impl Future<Output = Result<()>> + Send;
    fn fill(pool: &Pool<Self>, sql: &'static str, rows: u32) -> impl Future<Output = Result<()>> + Send;
    fn count(pool: &Pool<Self>, sql: &'static str) -> impl Future<Output = Result<i64>> + Send;

    /// Lease rows of the loops' table, oldest first.
    fn claim(pool: &Pool<Self>, rows: i64) -> impl Future<Output = Result<Vec<Row>>> + Send;
    /// Remove rows that were sent.
    fn delete(pool: &Pool<Self>, ids: Vec<String>) -> impl Future<Output = Result<()>> + Send;
    /// Mark one row as sent.
    fn mark(pool: &Pool<Self>, id: &str) -> impl Future<Output = Result<()>> + Send;

    /// One business row and one message in one transaction.
    fn commit_raw(pool: &Pool<Self>, message: RawMessage) -> impl Future<Output = Result<()>> + Send;
    /// The business row alone, in a transaction that is open.
    fn insert_business(connection: &mut Self::Connection) -> impl Future<Output = Result<()>> + Send;
}

/// Write the template: one message as the engine writes it, so that filled rows are like real ones.
pub(crate) const SAVE_TEMPLATE: &str =
    "INSERT INTO template SELECT id, kind, name, subject, headers, body, enqueued_at FROM trellis_outbox";
/// Empty our table.
pub(crate) const EMPTY_OURS: &str = "DELETE FROM trellis_outbox";
/// Empty the loops' table.
pub(crate) const EMPTY_IDEAL: &str = "DELETE FROM ideal";
/// Empty the table of business rows.
pub(crate) const EMPTY_BUSINESS: &str = "DELETE FROM business";
/// Rows of ours that were not sent.
pub(crate) const LEFT_OURS: &str = "SELECT count(*) FROM trellis_outbox";
/// Whether any row of ours is left, cheap enough to be asked all the time.
pub(crate) const ANY_OURS: &str = "SELECT count(*) FROM (SELECT 1 FROM trellis_outbox LIMIT 1) one";
/// Rows of the loops that were not sent.
pub(crate) const LEFT_IDEAL: &str = "SELECT count(*) FROM ideal WHERE dispatched_at IS NULL";
/// Business rows.
pub(crate) const BUSINESS: &str = "SELECT count(*) FROM business";
