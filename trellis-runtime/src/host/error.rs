//! Why a host does not start.
use crate::events::ProvisionError;
use crate::outbox::OutboxError;

/// Why a service cannot be started. Nothing of it runs then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Neither a client nor an address was given.
    #[error("no connection was chosen: call `.client(..)`, `.connect(..)` or `.connect_with(..)`")]
    NoConnection,
    /// The server cannot be reached.
    #[error("cannot connect to the NATS server")]
    Connect(#[source] async_nats::ConnectError),
    /// The client that was given has no connection.
    #[error("the client is not connected to a NATS server, {} s were waited for it", waited.as_secs())]
    NotConnected {
        /// How long it was waited for.
        waited: std::time::Duration,
    },
    /// The server is too old.
    #[error("nats-server {found} is too old: Trellis needs {needed} or newer")]
    TooOld {
        /// Its version.
        found: String,
        /// The oldest version that works.
        needed: &'static str,
    },
    /// The server has no JetStream, or not for this account.
    #[error(
        "the NATS server offers no JetStream to this account: start it with `-js`, and enable it for the account"
    )]
    NoJetStream(#[source] async_nats::jetstream::context::AccountError),
    /// The server takes smaller messages than the outbox accepts.
    #[error(
        "the server takes messages of {limit} bytes, the outbox accepts {accepted}: raise the server's `max_payload` (or the stream's `max_msg_size`) or lower `max_message_bytes`"
    )]
    MessageLimit {
        /// What the server takes.
        limit: usize,
        /// `max_message_bytes`.
        accepted: usize,
    },
    /// A setting cannot work.
    #[error("{0}")]
    Config(String),
    /// A declaration does not fit its payload.
    #[error(
        "event `{event}` names field `{field}`, which its payload's schema does not have; it has: {known}"
    )]
    UnknownField {
        /// Logical name.
        event: &'static str,
        /// The field named by `params` or `order_by`.
        field: &'static str,
        /// The fields there are.
        known: String,
    },
    /// The tables are missing, or the database failed.
    #[error("the outbox is not usable")]
    Outbox(#[from] OutboxError),
    /// Streams or consumers are not as they must be.
    #[error(transparent)]
    Provision(#[from] ProvisionError),
}

/// Coarse classes of [`StartError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartErrorKind {
    /// Something that time may heal: start again later.
    Unavailable,
    /// The server, the database or the code must be changed.
    Setup,
}

impl StartError {
    /// Which class this is.
    pub fn kind(&self) -> StartErrorKind {
        match self {
            Self::Connect(_)
            | Self::NotConnected { .. }
            | Self::Provision(ProvisionError::Server { .. })
            | Self::Outbox(OutboxError::Database(_) | OutboxError::Busy(_)) => StartErrorKind::Unavailable,
            _ => StartErrorKind::Setup,
        }
    }
}
