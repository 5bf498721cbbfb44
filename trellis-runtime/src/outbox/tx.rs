//! The transaction of `transaction` and `once`: runs queries, takes messages, commits only by its owner.
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use sqlx::Transaction;
use tokio::sync::OwnedMutexGuard;
use trellis::{JobId, Message, MessageId, Submission};

use crate::database::{Database, Fault, Store, begin};
use crate::outbox::append::{append, submit};
use crate::outbox::error::OutboxError;
use crate::outbox::shared::{Shared, WRITER_WAIT};

/// A transaction open longer than this is warned about.
const SLOW: Duration = Duration::from_secs(5);

/// An open transaction that events can be enqueued and jobs created in.
///
/// It derefs to the sqlx connection, so `&mut **tx` runs queries and `tx` coerces to
/// `&mut SqliteConnection` or `&mut PgConnection` for your helpers. Handlers get it as `&mut Tx`,
/// so they cannot commit half of it. Dropped before [`Tx::commit`], everything in it is undone.
pub struct Tx<D: Database> {
    // Dropped before `writer`, so that a rollback is under way when the next writer begins.
    open: Option<Transaction<'static, D>>,
    writer: Option<OwnedMutexGuard<()>>,
    shared: Arc<Shared<D>>,
    began: Duration,
    enqueued: usize,
    /// The user had the connection since the engine's last statement, which succeeded.
    touched: bool,
    /// Savepoints that were begun and not ended.
    savepoints: usize,
}

impl<D: Database> Tx<D> {
    pub(crate) async fn begin(shared: &Arc<Shared<D>>) -> Result<Self, OutboxError> {
        let writer = shared.writer().await?;
        let (open, writer) = begin_in_turn(shared, writer).await?;
        let began = shared.ports.clock.monotonic();
        let shared = Arc::clone(shared);
        let open = Some(open);
        Ok(Self { open, writer, shared, began, enqueued: 0, touched: false, savepoints: 0 })
    }

    /// Commit everything, and wake the dispatcher if anything was enqueued.
    ///
    /// Cancel safety: dropped before COMMIT is issued, everything is undone; from then on it is all
    /// or nothing, and what was committed is sent.
    ///
    /// # Errors
    /// The database refused, or an earlier statement failed and its error was swallowed.
    pub async fn commit(mut self) -> Result<(), OutboxError> {
        if self.savepoints > 0 {
            return Err(OutboxError::SavepointAbandoned);
        }
        let shared = Arc::clone(&self.shared);
        if <D as Store>::FAILED_STATEMENT_ABORTS && self.touched {
            <D as Store>::ping(self.connection()).await.map_err(|error| shared.error(error))?;
        }
        let Some(open) = self.open.take() else { return Ok(()) };
        let wake = WakeOnDrop((self.enqueued > 0).then(|| Arc::clone(&shared)));
        let committed = open.commit().await.map_err(|error| shared.error(error));
        drop(wake);
        committed
    }

    /// Undo everything. Dropping the transaction does the same, later.
    ///
    /// # Errors
    /// The connection is broken; the database undoes everything by itself then.
    pub async fn rollback(mut self) -> Result<(), OutboxError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        open.rollback().await.map_err(|error| self.shared.error(error))
    }

    /// A part that can be undone by itself: on `Err` what `work` did and enqueued is undone, and the
    /// transaction goes on without it.
    ///
    /// Cancel safety: if this future is dropped half-way, the transaction can no longer be committed.
    ///
    /// # Errors
    /// What `work` returned, or the database refused.
    pub async fn savepoint<T, E, F>(&mut self, work: F) -> Result<T, E>
    where
        F: AsyncFnOnce(&mut Tx<D>) -> Result<T, E>,
        E: From<OutboxError>,
    {
        self.savepoints += 1;
        self.run("SAVEPOINT trellis").await?;
        let enqueued = self.enqueued;
        let done = work(self).await;
        if done.is_err() {
            self.run("ROLLBACK TO SAVEPOINT trellis").await?;
            self.enqueued = enqueued;
        }
        self.run("RELEASE SAVEPOINT trellis").await?;
        self.savepoints -= 1;
        done
    }

    async fn run(&mut self, sql: &'static str) -> Result<(), OutboxError> {
        let ran = <D as Store>::execute(self.connection(), sql).await;
        ran.map_err(|error| self.shared.error(error))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<D>> {
        &self.shared
    }

    /// The connection, for the engine's own statements.
    pub(crate) fn connection(&mut self) -> &mut <D as sqlx::Database>::Connection {
        self.open.as_mut().expect("`open` is taken only by methods that consume the transaction")
    }
}

impl<D: Database> trellis::Outbox for Tx<D> {
    type Error = OutboxError;

    async fn append(&mut self, message: Message) -> Result<MessageId, OutboxError> {
        let shared = Arc::clone(&self.shared);
        // Until it succeeds: its error may be swallowed like that of any other statement.
        self.touched = true;
        let id = append(self.connection(), &shared, message).await?;
        self.enqueued += 1;
        self.touched = false;
        Ok(id)
    }

    async fn submit(&mut self, submission: Submission) -> Result<JobId, OutboxError> {
        let shared = Arc::clone(&self.shared);
        self.touched = true;
        let id = submit(self.connection(), &shared, submission).await?;
        self.enqueued += 1;
        self.touched = false;
        Ok(id)
    }
}

impl<D: Database> Deref for Tx<D> {
    type Target = <D as sqlx::Database>::Connection;
    fn deref(&self) -> &Self::Target {
        self.open.as_ref().expect("`open` is taken only by methods that consume the transaction")
    }
}

impl<D: Database> DerefMut for Tx<D> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.touched = true;
        self.connection()
    }
}

impl<D: Database> std::fmt::Debug for Tx<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tx").field("enqueued", &self.enqueued).finish_non_exhaustive()
    }
}

impl<D: Database> Drop for Tx<D> {
    fn drop(&mut self) {
        let open_for = self.shared.ports.clock.monotonic().saturating_sub(self.began);
        if open_for > SLOW {
            tracing::warn!(
                ?open_for,
                "a transaction was open for long: it holds a connection, and on SQLite every writer"
            );
        }
        // In this order, so that the rollback is queued before the next writer begins.
        drop(self.open.take());
        drop(self.writer.take());
    }
}

/// Begin, again and again while another process holds SQLite's write lock: its busy time-out is
/// not fair, and several seconds of bad luck are no reason to fail.
async fn begin_in_turn<D: Database>(
    shared: &Arc<Shared<D>>,
    mut writer: Option<OwnedMutexGuard<()>>,
) -> Result<(Transaction<'static, D>, Option<OwnedMutexGuard<()>>), OutboxError> {
    let clock = &shared.ports.clock;
    let began = clock.monotonic();
    loop {
        match begin(&shared.pool, writer.take()).await {
            Ok(begun) => return Ok(begun),
            Err(error)
                if <D as Store>::fault(&error) == Fault::Busy
                    && clock.monotonic().saturating_sub(began) < WRITER_WAIT =>
            {
                writer = shared.writer().await?;
            }
            Err(error) => return Err(shared.error(error)),
        }
    }
}

/// Wakes the dispatcher also when the future of a commit is dropped after COMMIT went out.
struct WakeOnDrop<D: Database>(Option<Arc<Shared<D>>>);

impl<D: Database> Drop for WakeOnDrop<D> {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.wake.notify_one();
        }
    }
}

impl<D: Database> Shared<D> {
    /// Why one of the engine's own statements failed, as users see it.
    pub(crate) fn error(&self, error: sqlx::Error) -> OutboxError {
        match <D as Store>::fault(&error) {
            Fault::NoTable => {
                OutboxError::NotMigrated { table: self.tables.outbox().to_owned(), source: error }
            }
            _ => OutboxError::from(error),
        }
    }
}
