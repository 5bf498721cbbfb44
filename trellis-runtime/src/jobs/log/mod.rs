//! The log of jobs on the broker: compare-and-append, and reads that decide.
//!
//! Each append names the sequence number it expects as the last of its job's tree; the server takes
//! one of several that race and refuses the others. Sources: `Nats-Expected-Last-Subject-Sequence`
//! with `…-Subject` in nats-server 2.11 and later; what its refusals mean is in `docs/adr/0013`.
mod append;
mod clock;
mod read;

use async_nats::Client;
use async_nats::jetstream::Context;

pub(crate) use append::{Append, AppendError};
pub(crate) use clock::BrokerClock;
#[cfg(test)]
pub(crate) use read::Stored;
pub(crate) use read::{ReadError, Tree};

use crate::ports::Ports;

/// The log of all jobs of one environment.
#[derive(Debug, Clone)]
pub(crate) struct JobLog {
    pub(crate) client: Client,
    pub(crate) context: Context,
    /// The stream that holds it.
    pub(crate) stream: String,
    pub(crate) ports: Ports,
    pub(crate) clock: BrokerClock,
}
