//! Handlers: what a service implements to consume events.
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::time::SystemTime;

use crate::event::Event;
use crate::message::MessageId;

/// A service: implemented once, it names what all its handlers are handed.
pub trait Service: Send + Sync + 'static {
    /// The context of its handlers, e.g. `trellis_runtime::Ctx<orders::Contract, sqlx::Sqlite>`.
    type Ctx: Send + Sync + 'static;
}

/// Handles one event. One implementation per event that the service consumes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no handler for the event `{E}`",
    label = "`impl On<{E}> for {Self}` is missing",
    note = "a group that is mounted needs a handler for each of its events"
)]
pub trait On<E: Event>: Service {
    /// Handle `event`. `Ok` acknowledges it; `Err` and a panic bring it back after a delay, until
    /// the delivery limit turns it into a dead letter.
    ///
    /// Delivery is at least once: change state inside `ctx.once(..)`, which does so once per event
    /// and group.
    fn on(
        &self,
        ctx: &Self::Ctx,
        event: Received<E>,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;
}

/// An event as a handler gets it.
#[non_exhaustive]
pub struct Received<E: Event> {
    /// What was sent.
    pub payload: E::Payload,
    /// The message's identity.
    pub id: MessageId,
    /// Identity of the first message of this content: the same for every redrive of it.
    pub root_id: MessageId,
    /// When it was enqueued, by its producer's clock.
    pub time: SystemTime,
    /// The subject it came on.
    pub subject: String,
    /// How often it was delivered to this group, this time included: 1 for a first delivery.
    pub deliveries: u64,
    /// Its place in the stream.
    pub sequence: u64,
}

impl<E: Event> Received<E> {
    /// An event as the engine or a test hands it to a handler.
    pub fn new(payload: E::Payload, id: MessageId, time: SystemTime) -> Self {
        let root_id = id.clone();
        Self { payload, id, root_id, time, subject: String::new(), deliveries: 1, sequence: 0 }
    }
}

impl<E: Event> fmt::Debug for Received<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received")
            .field("event", &E::DECLARATION.name)
            .field("id", &self.id)
            .field("deliveries", &self.deliveries)
            .finish_non_exhaustive()
    }
}

/// Why a handler did not handle an event. Every `std::error::Error` becomes one by `?`.
#[derive(Debug)]
pub struct HandlerError {
    source: Box<dyn Error + Send + Sync>,
    dead: bool,
}

impl HandlerError {
    /// The event comes back after a delay, up to the group's delivery limit.
    pub fn retry(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: reason.into(), dead: false }
    }

    /// No later delivery can succeed: the event becomes a dead letter at once.
    pub fn dead(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: reason.into(), dead: true }
    }

    /// Whether the event becomes a dead letter at once.
    pub fn is_dead(&self) -> bool {
        self.dead
    }
}

// `HandlerError` is no `std::error::Error` itself, or this would overlap with `From<T> for T`.
impl<X: Error + Send + Sync + 'static> From<X> for HandlerError {
    fn from(error: X) -> Self {
        Self::retry(error)
    }
}

/// The reason and its causes, joined by `: `.
impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        let mut cause = self.source.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
