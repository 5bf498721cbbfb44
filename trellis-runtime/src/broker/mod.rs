//! The port to the broker: publish a page, tell whether it could be taken at all.
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
pub enum PublishError {
    /// Nothing that the message could help: no connection, no answer in time, no responders, no
    /// leader, a full or missing stream. It may have been stored all the same.
    Unavailable(String),
    /// The broker, or the client on its behalf, will never take this message.
    Refused(String),
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(reason) | Self::Refused(reason) => f.write_str(reason),
        }
    }
}

/// Where a dispatcher sends to.
pub trait Broker: Send + Sync + 'static {
    /// Publish `page`, pipelined; one outcome per message, in the same order. Bounded in time.
    fn publish(&self, page: Vec<Outgoing>) -> BoxFuture<'_, Vec<Result<Ack, PublishError>>>;

    /// Whether a well-formed message could be stored now; the reason if not. Bounded in time.
    fn probe(&self) -> BoxFuture<'_, Result<(), String>>;
}
