//! What handlers and the code around them are handed.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;
use trellis::Contract;

use crate::database::Database;
use crate::nats::Nats;
use crate::outbox::{OutboxError, SqlOutbox, Tx};

/// The context of a service that owns contract `C` and keeps its state in a database `D`.
///
/// Handlers get one per delivery, in which [`once`](Ctx::once) works; [`Host::ctx`](crate::Host::ctx)
/// gives one for everything else.
pub struct Ctx<C: Contract, D: Database> {
    /// The events this contract owns: `ctx.event.orders.created.enqueue(tx, payload)`.
    pub event: C::Events,
    /// The jobs this contract owns: `ctx.job.orders.send_receipt.create(tx, payload)`.
    pub job: C::Jobs,
    /// The connection to NATS, and the way to jobs without a transaction.
    pub nats: Nats,
    outbox: SqlOutbox<D>,
    delivery: Option<Arc<Delivery>>,
}

/// What `once` is once for.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) consumer: Arc<str>,
    pub(crate) root_id: String,
    pub(crate) used: AtomicBool,
}

impl<C: Contract, D: Database> Ctx<C, D> {
    pub(crate) fn new(nats: Nats, outbox: SqlOutbox<D>, delivery: Option<Delivery>) -> Self {
        Self {
            event: C::Events::default(),
            job: C::Jobs::default(),
            nats,
            outbox,
            delivery: delivery.map(Arc::new),
        }
    }

    /// Commit what `work` did and enqueued when it returns `Ok`; undo all of it when it returns
    /// `Err` or when this future is dropped before COMMIT.
    ///
    /// Keep it short: it holds a connection, and on SQLite every writer. Do not nest it.
    ///
    /// # Errors
    /// What `work` returned, or that the transaction could not be begun or committed.
    pub async fn transaction<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: AsyncFnOnce(&mut Tx<D>) -> Result<T, E>,
        E: From<OutboxError>,
    {
        self.outbox.transaction(work).await
    }

    /// [`transaction`](Ctx::transaction) that commits once per event and consumer group, or once per
    /// run of a job, however often it is delivered: a row in the inbox is part of it. A later delivery does not run
    /// `work` and returns what the first one stored.
    ///
    /// Call it at most once per delivery, with everything that belongs together inside. After `Err`
    /// it may be called again. What `work` returns says its error type where the handler needs the
    /// result: `let reserved = ctx.once(async |tx| { …; Ok::<_, HandlerError>(true) }).await?;`
    ///
    /// # Errors
    /// What `work` returned, that the database refused, or that this is no delivery.
    pub async fn once<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        F: AsyncFnOnce(&mut Tx<D>) -> Result<T, E>,
        E: From<OutboxError>,
    {
        let Some(delivery) = &self.delivery else { return Err(OutboxError::NoDelivery.into()) };
        if delivery.used.swap(true, Ordering::AcqRel) {
            return Err(OutboxError::OnceAgain.into());
        }
        let unused = Unused(Some(delivery));
        let done = self.outbox.once(&delivery.consumer, &delivery.root_id, work).await?;
        unused.keep();
        Ok(done)
    }

    /// The outbox, for `join` and for operators' calls.
    pub fn outbox(&self) -> &SqlOutbox<D> {
        &self.outbox
    }
}

/// Gives the one use back unless it was made: on an error and on a dropped future.
struct Unused<'a>(Option<&'a Delivery>);

impl Unused<'_> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Unused<'_> {
    fn drop(&mut self) {
        if let Some(delivery) = self.0 {
            delivery.used.store(false, Ordering::Release);
        }
    }
}

impl<C: Contract, D: Database> Clone for Ctx<C, D> {
    fn clone(&self) -> Self {
        Self {
            event: self.event,
            job: self.job,
            nats: self.nats.clone(),
            outbox: self.outbox.clone(),
            delivery: self.delivery.clone(),
        }
    }
}

impl<C: Contract, D: Database> std::fmt::Debug for Ctx<C, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ctx")
            .field("contract", &C::ID)
            .field("delivery", &self.delivery)
            .finish_non_exhaustive()
    }
}
