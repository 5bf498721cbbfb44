//! Events: what a declaration says, and the handle an event is enqueued through.
use std::fmt;
use std::marker::PhantomData;

use crate::message::{Message, Payload};
use crate::outbox::{Enqueue, Outbox};

/// A declared event. Implemented by `#[event(..)]`, never by hand.
///
/// The type that implements it is the event's *marker*; it is its own payload unless the
/// declaration says `payload = path`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a declared event",
    label = "expected a type under `#[event(\"..\")]` in a `#[trellis::contract]` module"
)]
pub trait Event: Send + Sync + 'static {
    /// What travels.
    type Payload: Payload;
    /// What the contract says of this event.
    const DECLARATION: EventDeclaration;
}

/// What a contract says of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventDeclaration {
    /// Identity of the owning contract, e.g. `acme.orders@v1`.
    pub contract: &'static str,
    /// Logical name, e.g. `orders.created`.
    pub name: &'static str,
    /// Payload fields (by wire name) whose values are the last tokens of the subject.
    pub params: &'static [&'static str],
    /// Payload field (by wire name) whose value is the ordering key.
    pub order_by: Option<&'static str>,
}

impl EventDeclaration {
    /// A declaration with neither parameters nor an ordering key.
    pub const fn new(contract: &'static str, name: &'static str) -> Self {
        Self { contract, name, params: &[], order_by: None }
    }

    /// The same with subject parameters.
    #[must_use]
    pub const fn params(mut self, params: &'static [&'static str]) -> Self {
        self.params = params;
        self
    }

    /// The same with an ordering key.
    #[must_use]
    pub const fn order_by(mut self, field: &'static str) -> Self {
        self.order_by = Some(field);
        self
    }
}

/// Where an event is enqueued from: a zero-sized, `Copy` field of the facade.
pub struct EventHandle<E>(PhantomData<fn() -> E>);

// No bound: what is wrong with an event is said at its declaration, once.
impl<E> EventHandle<E> {
    /// The handle of `E`.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<E: Event> EventHandle<E> {
    /// Enqueue `payload` in the open transaction `tx`: the event is sent if, and only if, that
    /// transaction commits.
    ///
    /// Await what is returned; it yields the message id. Dropping the future before it is ready
    /// enqueues nothing that could be committed.
    ///
    /// # Errors
    /// The payload cannot be encoded, violates its schema or is too large, a subject parameter is
    /// missing, the id was used for other content, or the database refused.
    pub fn enqueue<O: Outbox>(self, tx: &mut O, payload: E::Payload) -> Enqueue<'_, O> {
        Enqueue::new(tx, Message::event::<E>(&payload))
    }
}

// By hand: a derive would demand `E: Clone`.
impl<E> Clone for EventHandle<E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E> Copy for EventHandle<E> {}
impl<E> Default for EventHandle<E> {
    fn default() -> Self {
        Self(PhantomData)
    }
}
impl<E: Event> fmt::Debug for EventHandle<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventHandle({})", E::DECLARATION.name)
    }
}
