//! The outbox: messages written in the transaction that changes the state they tell of.
mod append;
mod config;
mod dispatcher;
mod error;
mod inbox;
mod job;
mod join;
mod migrate;
mod outcome;
mod prepare;
mod row;
mod shared;
mod stats;
mod submissions;
mod tx;

use std::sync::Arc;

use sqlx::Pool;

pub use config::{DeadKey, InvalidOutboxConfig, InvalidTableName, OutboxConfig, Tables};
pub use dispatcher::{Dispatcher, DispatcherStats};
pub use error::{OutboxError, OutboxErrorKind};
pub use join::{Joined, Wake};
pub use migrate::{MigrationArtifact, migrate, migrate_tables, migrations};
pub use outcome::{Rejection, SubmissionOutcome, SubmissionState};
pub use stats::{DeadRow, OutboxStats};
pub use tx::Tx;

#[cfg(any(test, feature = "testing"))]
pub(crate) use append::{prepare_message, prepare_submission};
pub(crate) use dispatcher::UNKNOWN;
pub(crate) use prepare::{header_bytes, parse_rfc3339, rfc3339};
pub(crate) use row::{
    Claim, ClaimedRow, Decision, Failure, Kind, MAX_SUBJECT_BYTES, NewRow, StoredRow, StoredSubmission,
};
pub(crate) use shared::Shared;

use crate::database::{Database, Store};
use crate::ports::{DbClock, Ports};
use crate::validate::Validators;
use crate::wire::Environment;

/// An outbox and inbox in one database. Cheap to clone; clones share one writer and one wake-up.
pub struct SqlOutbox<D: Database>(pub(crate) Arc<Shared<D>>);

/// Sets up a [`SqlOutbox`].
#[derive(Debug)]
pub struct SqlOutboxBuilder<D: Database> {
    pool: Pool<D>,
    tables: Tables,
    config: OutboxConfig,
    environment: Environment,
    ports: Ports,
    db_clock: DbClock,
}

impl<D: Database> SqlOutbox<D> {
    /// An outbox in the database behind `pool`, with everything at its default.
    ///
    /// # Errors
    /// The configuration cannot work.
    pub fn new(pool: Pool<D>) -> Result<Self, InvalidOutboxConfig> {
        Self::builder(pool).build()
    }

    /// An outbox with other settings.
    pub fn builder(pool: Pool<D>) -> SqlOutboxBuilder<D> {
        SqlOutboxBuilder {
            pool,
            tables: Tables::default(),
            config: OutboxConfig::default(),
            environment: Environment::NONE,
            ports: Ports::default(),
            db_clock: DbClock::default(),
        }
    }

    /// Commit what `work` did and enqueued when it returns `Ok`; undo all of it when it returns
    /// `Err` or when this future is dropped before COMMIT.
    ///
    /// On SQLite the transaction begins IMMEDIATE and transactions of one outbox take turns, so
    /// that no BUSY reaches you. On PostgreSQL it is READ COMMITTED; for another isolation level
    /// open your own and [`join`](Self::join) it.
    ///
    /// # Errors
    /// What `work` returned, or that the transaction could not be begun or committed.
    pub async fn transaction<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: AsyncFnOnce(&mut Tx<D>) -> Result<T, E>,
        E: From<OutboxError>,
    {
        let mut tx = self.begin().await?;
        match work(&mut tx).await {
            Ok(done) => {
                tx.commit().await?;
                Ok(done)
            }
            Err(error) => {
                if let Err(error) = tx.rollback().await {
                    tracing::debug!(%error, "a rollback failed; the database undoes the transaction by itself");
                }
                Err(error)
            }
        }
    }

    /// Open a transaction to be committed by hand. Dropping it undoes it.
    ///
    /// # Errors
    /// No connection could be had, or BEGIN failed.
    pub async fn begin(&self) -> Result<Tx<D>, OutboxError> {
        Tx::begin(&self.0).await
    }

    /// Let messages join a transaction that you opened.
    ///
    /// ```no_run
    /// # async fn f(outbox: trellis_runtime::SqlOutbox<sqlx::Sqlite>, pool: sqlx::SqlitePool) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    /// let mut joined = outbox.join(&mut tx);
    /// // … `event.orders.created.enqueue(&mut joined, payload).await?` …
    /// let wake = joined.into_wake();
    /// tx.commit().await?;
    /// wake.wake();
    /// # Ok(()) }
    /// ```
    ///
    /// On SQLite begin it with `begin_with("BEGIN IMMEDIATE")`: a deferred transaction that has read
    /// cannot start to write while another one does, and is refused at once.
    pub fn join<'t>(&self, connection: &'t mut <D as sqlx::Database>::Connection) -> Joined<'t, D> {
        Joined::new(connection, Arc::clone(&self.0))
    }

    /// Rows by state. Reads every row that is still to be sent or dead, and counts the others: for
    /// health checks and operators, not for hot paths.
    ///
    /// # Errors
    /// The database failed.
    pub async fn stats(&self) -> Result<OutboxStats, OutboxError> {
        let stats = <D as Store>::stats(&self.0.pool, &self.0.sql, self.0.db_clock.offset_ms()).await;
        stats.map_err(|error| self.0.error(error))
    }

    /// The oldest rows that were given up, at most `limit`.
    ///
    /// # Errors
    /// The database failed.
    pub async fn dead(&self, limit: u32) -> Result<Vec<DeadRow>, OutboxError> {
        let dead = <D as Store>::dead(&self.0.pool, &self.0.sql, limit.into()).await;
        dead.map_err(|error| self.0.error(error))
    }

    /// Send a dead row again, with all its attempts. False when no dead row has this id. That of a job
    /// is `job:<name>:<job id>`.
    ///
    /// A job whose outcome is unknown is created anew by it: make sure first that it did not run. One
    /// that is dead for another reason may still be given up again as unknown, once its first send is
    /// longer ago than [`OutboxConfig::job_horizon`].
    ///
    /// # Errors
    /// The database failed.
    pub async fn redrive(&self, id: &str) -> Result<bool, OutboxError> {
        let turn = self.0.writer().await?;
        let redriven = <D as Store>::redrive(&self.0.pool, &self.0.sql, id).await;
        drop(turn);
        let redriven = redriven.map_err(|error| self.0.error(error))?;
        if redriven {
            self.0.wake.notify_one();
        }
        Ok(redriven)
    }

    /// Check that the tables are there.
    ///
    /// # Errors
    /// They are not, or the database failed.
    pub async fn verify(&self) -> Result<(), OutboxError> {
        <D as Store>::verify(&self.0.pool, &self.0.sql).await.map_err(|error| self.0.error(error))
    }

    /// The first token of its subjects, if any.
    pub fn environment(&self) -> &Environment {
        &self.0.environment
    }

    /// Its settings.
    pub fn config(&self) -> &OutboxConfig {
        &self.0.config
    }
}

impl<D: Database> SqlOutboxBuilder<D> {
    /// Limits and times.
    #[must_use]
    pub fn config(mut self, config: OutboxConfig) -> Self {
        self.config = config;
        self
    }

    /// Other table names.
    #[must_use]
    pub fn tables(mut self, tables: Tables) -> Self {
        self.tables = tables;
        self
    }

    /// The first token of its subjects.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Clock, ids and jitter.
    #[must_use]
    pub fn ports(mut self, ports: Ports) -> Self {
        self.ports = ports;
        self
    }

    /// The clock that judges leases and due times.
    #[must_use]
    pub fn db_clock(mut self, db_clock: DbClock) -> Self {
        self.db_clock = db_clock;
        self
    }

    /// # Errors
    /// The configuration cannot work.
    pub fn build(self) -> Result<SqlOutbox<D>, InvalidOutboxConfig> {
        self.config.check()?;
        let sql = <D as Store>::sql(&self.tables, &self.config);
        Ok(SqlOutbox(Arc::new(Shared {
            pool: self.pool,
            tables: self.tables,
            config: self.config,
            environment: self.environment,
            ports: self.ports,
            db_clock: self.db_clock,
            sql,
            validators: Validators::default(),
            wake: tokio::sync::Notify::new(),
            waiters: submissions::Waiters::default(),
            writer: Arc::default(),
        })))
    }
}

// By hand: a derive would demand `D: Clone`.
impl<D: Database> Clone for SqlOutbox<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<D: Database> std::fmt::Debug for SqlOutbox<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqlOutbox").field("tables", &self.0.tables).finish_non_exhaustive()
    }
}
