//! The port to the broker: publish a page, tell whether it could be taken at all, read what decides.
mod nats;

use std::fmt;

use async_nats::HeaderMap;
use bytes::Bytes;
use futures_util::future::BoxFuture;

pub use nats::NatsBroker;
pub(crate) use nats::is_passing;

/// A message as it is sent.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// Where it goes.
    pub subject: String,
    /// Its headers, the message id among them.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// What the broker says of a stored message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ack {
    /// The stream that stored it.
    pub stream: String,
    /// Its place in that stream.
    pub sequence: u64,
    /// Whether the broker had it already.
    pub duplicate: bool,
}

/// Why a message was not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublishError {
    /// Nothing that the message could help: no answer in time, no leader, a full stream. It may have
    /// been stored all the same.
    Unavailable(String),
    /// The same, and it is certain that this send has not stored it: there was no connection, or no
    /// stream takes the subject.
    NotSent(String),
    /// The message expected nothing before it on its subjects, and something is there; its own
    /// earlier send, perhaps. [`Broker::first`] tells what.
    Occupied(String),
    /// The broker, or the client on its behalf, will never take this message.
    Refused(String),
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(reason)
            | Self::NotSent(reason)
            | Self::Occupied(reason)
            | Self::Refused(reason) => f.write_str(reason),
        }
    }
}

/// Which of the broker's streams a message is for. One can be away while the other is well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Destination {
    /// The stream of all events.
    Events,
    /// The stream of all jobs' logs.
    Jobs,
}

/// The first message that is stored on some subjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct First {
    /// Where it was sent to.
    pub subject: String,
    /// The value of its header [`APPEND_ID`](crate::wire::APPEND_ID), if it has one.
    pub append_id: Option<String>,
    /// Its body.
    pub body: Bytes,
}

/// Where a dispatcher sends to.
pub trait Broker: Send + Sync + 'static {
    /// Publish `page`, pipelined; one outcome per message, in the same order. Bounded in time.
    fn publish(&self, page: Vec<Outgoing>) -> BoxFuture<'_, Vec<Result<Ack, PublishError>>>;

    /// Whether a well-formed message for `destination` could be stored now; the reason if not.
    /// Bounded in time.
    fn probe(&self, destination: Destination) -> BoxFuture<'_, Result<(), String>>;

    /// The first message in the jobs' stream on subjects that `filter` covers, as the stream's leader
    /// knows it. `None` proves nothing: the one that answers may lag. Bounded in time.
    ///
    /// # Errors
    /// The leader gave no answer, and why: [`PublishError::Unavailable`].
    fn first(&self, filter: String) -> BoxFuture<'_, Result<Option<First>, PublishError>>;
}
