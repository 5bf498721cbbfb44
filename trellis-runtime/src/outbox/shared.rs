//! What all clones of one outbox and its dispatchers share.
use std::sync::Arc;
use std::time::Duration;

use sqlx::Pool;
use tokio::sync::{Mutex, Notify, OwnedMutexGuard};

use crate::database::{Database, Store};
use crate::outbox::config::{OutboxConfig, Tables};
use crate::outbox::error::OutboxError;
use crate::outbox::submissions::Waiters;
use crate::ports::{DbClock, Ports};
use crate::validate::Validators;
use crate::wire::Environment;

/// How long a writer of SQLite waits for its turn.
pub(crate) const WRITER_WAIT: Duration = Duration::from_secs(30);

pub(crate) struct Shared<D: Database> {
    pub(crate) pool: Pool<D>,
    pub(crate) tables: Tables,
    pub(crate) config: OutboxConfig,
    pub(crate) environment: Environment,
    pub(crate) ports: Ports,
    pub(crate) db_clock: DbClock,
    pub(crate) sql: <D as Store>::Sql,
    pub(crate) validators: Validators,
    /// Something was committed that could be sent.
    pub(crate) wake: Notify,
    /// Who waits for the outcome of a job.
    pub(crate) waiters: Waiters,
    /// The turn of SQLite's one writer; fair, where SQLite's own busy time-out is not.
    pub(crate) writer: Arc<Mutex<()>>,
}

impl<D: Database> Shared<D> {
    /// The turn to write, where the database has one writer.
    pub(crate) async fn writer(&self) -> Result<Option<OwnedMutexGuard<()>>, OutboxError> {
        if !<D as Store>::SINGLE_WRITER {
            return Ok(None);
        }
        let turn = tokio::time::timeout(WRITER_WAIT, Arc::clone(&self.writer).lock_owned()).await;
        turn.map(Some).map_err(|_| OutboxError::Busy(sqlx::Error::PoolTimedOut))
    }
}
