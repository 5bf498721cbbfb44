//! The port through which an enqueue reaches the caller's transaction.
use std::future::{Future, IntoFuture};
use std::pin::Pin;

use crate::job::{JobId, Submission};
use crate::message::{Message, MessageId, PayloadError};

/// An open transaction that a message can join.
///
/// `trellis-runtime` implements this for its `Tx` and `Joined`, and for the `MemoryOutbox` of its
/// `testing` room. It is deliberately not implemented for pools: a message enqueued outside the
/// transaction that changed the state is the bug an outbox exists to prevent.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an open transaction",
    label = "expected the `tx` of `ctx.transaction(async |tx| ..)`",
    note = "an enqueue joins the transaction that changes your state: call it inside `ctx.transaction` or \
            `ctx.once`, or wrap a transaction of your own with `outbox.join(&mut tx)`"
)]
pub trait Outbox: Send {
    /// Why a message could not be appended.
    type Error: From<PayloadError> + Send;

    /// Append one message inside this transaction; yields its id, made here where none was chosen.
    fn append(&mut self, message: Message) -> impl Future<Output = Result<MessageId, Self::Error>> + Send;

    /// Append one job inside this transaction; yields its id, made here where none was chosen.
    fn submit(&mut self, submission: Submission) -> impl Future<Output = Result<JobId, Self::Error>> + Send;
}

/// A message about to be enqueued. Await it.
#[must_use = "nothing is enqueued until this is awaited"]
#[derive(Debug)]
pub struct Enqueue<'t, O> {
    outbox: &'t mut O,
    message: Result<Message, PayloadError>,
}

impl<'t, O> Enqueue<'t, O> {
    pub(crate) fn new(outbox: &'t mut O, message: Result<Message, PayloadError>) -> Self {
        Self { outbox, message }
    }

    /// Choose the message's identity, so that a repeated command enqueues it once.
    ///
    /// The same id with the same content yields the stored row as long as that row exists; with
    /// other content it is an error. After that, the broker's duplicate window (2 minutes by
    /// default) and the consumers' inboxes take over.
    pub fn id(self, id: impl Into<String>) -> Self {
        let message = self.message.and_then(|mut message| {
            let name = message.declaration.name;
            message.id = Some(MessageId::new(id).map_err(|source| PayloadError::Id { name, source })?);
            Ok(message)
        });
        Self { message, ..self }
    }

    /// Choose the ordering key, in place of the declared one: rows that share a key leave in the
    /// order of their commits. `order_by = customer_id` yields the key `customer_id=<value>`.
    pub fn ordered_by(mut self, key: impl Into<String>) -> Self {
        if let Ok(message) = &mut self.message {
            message.order_key = Some(key.into());
        }
        self
    }
}

impl<'t, O: Outbox> IntoFuture for Enqueue<'t, O> {
    type Output = Result<MessageId, O::Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 't>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.outbox.append(self.message?).await })
    }
}
