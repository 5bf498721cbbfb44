//! A transaction that the caller owns, as an outbox.
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use trellis::{JobId, Message, MessageId, Submission};

use crate::database::Database;
use crate::outbox::append::{append, submit};
use crate::outbox::error::OutboxError;
use crate::outbox::shared::Shared;

/// A transaction opened elsewhere that messages can join; see [`SqlOutbox::join`](crate::SqlOutbox::join).
pub struct Joined<'t, D: Database> {
    connection: &'t mut <D as sqlx::Database>::Connection,
    shared: Arc<Shared<D>>,
    enqueued: bool,
}

impl<'t, D: Database> Joined<'t, D> {
    pub(crate) fn new(connection: &'t mut <D as sqlx::Database>::Connection, shared: Arc<Shared<D>>) -> Self {
        Self { connection, shared, enqueued: false }
    }

    /// Give the transaction back. Commit it, then call [`Wake::wake`].
    pub fn into_wake(self) -> Wake<D> {
        Wake(self.enqueued.then_some(self.shared))
    }
}

impl<D: Database> trellis::Outbox for Joined<'_, D> {
    type Error = OutboxError;

    async fn append(&mut self, message: Message) -> Result<MessageId, OutboxError> {
        let id = append(&mut *self.connection, &self.shared, message).await.map_err(of_joined)?;
        self.enqueued = true;
        Ok(id)
    }

    async fn submit(&mut self, submission: Submission) -> Result<JobId, OutboxError> {
        let id = submit(&mut *self.connection, &self.shared, submission).await.map_err(of_joined)?;
        self.enqueued = true;
        Ok(id)
    }
}

/// A transaction that the caller began can have begun deferred.
fn of_joined(error: OutboxError) -> OutboxError {
    match error {
        OutboxError::Busy(source) => OutboxError::DeferredTransaction(source),
        error => error,
    }
}

impl<D: Database> Deref for Joined<'_, D> {
    type Target = <D as sqlx::Database>::Connection;
    fn deref(&self) -> &Self::Target {
        self.connection
    }
}

impl<D: Database> DerefMut for Joined<'_, D> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.connection
    }
}

impl<D: Database> std::fmt::Debug for Joined<'_, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Joined").field("enqueued", &self.enqueued).finish_non_exhaustive()
    }
}

/// Wakes the dispatcher once your transaction is committed. Forgotten, its rows leave with the next
/// poll (1 s by default) instead of at once.
#[must_use = "call `wake()` after the commit, or the rows wait for the next poll"]
pub struct Wake<D: Database>(Option<Arc<Shared<D>>>);

impl<D: Database> Wake<D> {
    /// Wake the dispatcher, if anything was enqueued.
    pub fn wake(self) {
        if let Some(shared) = self.0 {
            shared.wake.notify_one();
        }
    }
}

impl<D: Database> std::fmt::Debug for Wake<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Wake").field(&self.0.is_some()).finish()
    }
}
