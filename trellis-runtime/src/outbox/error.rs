//! What can go wrong around a transaction and an enqueue.
use trellis::PayloadError;

use crate::database::{Fault, fault};
use crate::jobs::SubmissionError;
use crate::validate::Invalid;

/// Why a transaction or an enqueue failed. Nothing of that transaction is sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutboxError {
    /// The payload cannot become a message.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// The payload violates a constraint of its schema.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// Body and headers together exceed the configured limit.
    #[error(
        "`{name}` takes {size} bytes with its headers, the limit is {limit}: send a reference to the data instead, or raise `max_message_bytes` and the server's `max_payload`"
    )]
    TooLarge {
        /// Logical name.
        name: &'static str,
        /// Bytes of body and headers.
        size: usize,
        /// `max_message_bytes`.
        limit: usize,
    },
    /// The subject is longer than a broker takes.
    #[error("the subject of `{name}` would take {size} bytes, the limit is {limit}: use shorter parameters")]
    SubjectTooLong {
        /// Logical name.
        name: &'static str,
        /// Bytes of the subject.
        size: usize,
        /// The longest subject.
        limit: usize,
    },
    /// The ordering key is longer than an index entry can be.
    #[error("the ordering key of `{name}` takes {size} bytes, the limit is {limit}: order by an identifier")]
    KeyTooLong {
        /// Logical name.
        name: &'static str,
        /// Bytes of the key.
        size: usize,
        /// The longest key.
        limit: usize,
    },
    /// A row with this id and other content exists.
    #[error(
        "id `{id}` is taken by other content (`{stored}`): one id names one message, or one job of a name"
    )]
    DuplicateId {
        /// The id that was chosen.
        id: String,
        /// Logical name of the stored row.
        stored: String,
    },
    /// The connection has no open transaction, so an enqueue could not be undone with the state.
    #[error(
        "the connection has no open transaction: begin one through sqlx (`pool.begin()`) before `outbox.join(..)`"
    )]
    NotInTransaction,
    /// SQLite refused to turn a reading transaction into a writing one.
    #[error(
        "SQLite is busy: a transaction that began deferred cannot start to write while another one does; begin it with `pool.begin_with(\"BEGIN IMMEDIATE\")`"
    )]
    DeferredTransaction(#[source] sqlx::Error),
    /// Another process kept SQLite's write lock for the whole busy time-out. Repeat the transaction.
    #[error(
        "SQLite stayed busy: another process holds the write lock, or this transaction was begun inside another one, which can never work; repeat the outermost transaction"
    )]
    Busy(#[source] sqlx::Error),
    /// The database ended this transaction in favour of another one. Repeat it.
    #[error(
        "the database gave up this transaction in favour of another one; repeat it, and take ordering keys in the same order everywhere"
    )]
    Conflict(#[source] sqlx::Error),
    /// A statement of this transaction failed and its error was swallowed: PostgreSQL would
    /// answer COMMIT by rolling back.
    #[error(
        "an earlier statement of this transaction failed, so nothing of it can be committed: return its error instead of ignoring it"
    )]
    Aborted(#[source] sqlx::Error),
    /// The future of a savepoint was dropped, so its part is neither done nor undone.
    #[error(
        "a savepoint of this transaction was abandoned half-way: return from the transaction instead of going on"
    )]
    SavepointAbandoned,
    /// `ctx.once` outside of a delivery.
    #[error("`once` needs an event or job to be done once for: outside of a handler use `transaction`")]
    NoDelivery,
    /// `ctx.once` a second time for one delivery.
    #[error("`once` was already used for this delivery: put everything that belongs together into one call")]
    OnceAgain,
    /// What `once` stored earlier cannot be read back.
    #[error("the stored result of an earlier delivery cannot be read as the type that is asked for")]
    StoredResult(#[source] serde_json::Error),
    /// What `once` is to store cannot be encoded.
    #[error("the result to be stored for later deliveries cannot be encoded")]
    EncodeResult(#[source] serde_json::Error),
    /// What became of a job cannot be read back.
    #[error("the stored outcome of a job's submission cannot be read")]
    StoredOutcome(#[source] serde_json::Error),
    /// The tables are not there, or are those of an earlier version.
    #[error(
        "table `{table}` is missing or of an earlier version: run `trellis_runtime::migrate(&pool)` once, or its artifacts with your own tool"
    )]
    NotMigrated {
        /// Name of the table.
        table: String,
        /// What the database said.
        #[source]
        source: sqlx::Error,
    },
    /// The database did not answer one of the engine's own statements in time.
    #[error("the database did not answer within {0:?}")]
    NoAnswer(std::time::Duration),
    /// Anything else the database said.
    #[error("database error")]
    Database(#[source] sqlx::Error),
}

/// Coarse classes of [`OutboxError`], for deciding what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutboxErrorKind {
    /// The message can never be enqueued as it is.
    Invalid,
    /// The id is taken.
    Duplicate,
    /// Repeating the whole transaction may succeed.
    Retryable,
    /// The calling code is wrong.
    Misuse,
    /// The database failed.
    Database,
}

impl OutboxError {
    /// Which class this is.
    pub fn kind(&self) -> OutboxErrorKind {
        use OutboxErrorKind as Kind;
        match self {
            Self::Payload(_)
            | Self::Invalid(_)
            | Self::TooLarge { .. }
            | Self::SubjectTooLong { .. }
            | Self::KeyTooLong { .. } => Kind::Invalid,
            Self::DuplicateId { .. } => Kind::Duplicate,
            Self::Busy(_) | Self::Conflict(_) => Kind::Retryable,
            Self::NotInTransaction
            | Self::DeferredTransaction(_)
            | Self::SavepointAbandoned
            | Self::NoDelivery
            | Self::OnceAgain => Kind::Misuse,
            Self::Aborted(_)
            | Self::StoredResult(_)
            | Self::EncodeResult(_)
            | Self::StoredOutcome(_)
            | Self::NotMigrated { .. }
            | Self::NoAnswer(_)
            | Self::Database(_) => Kind::Database,
        }
    }
}

/// For your own statements beside an enqueue: with `?` a whole transaction can fail with
/// [`OutboxError`], and a deadlock or a busy database is [`OutboxErrorKind::Retryable`] whichever
/// statement met it.
impl From<sqlx::Error> for OutboxError {
    fn from(error: sqlx::Error) -> Self {
        match fault(&error) {
            Fault::Busy => Self::Busy(error),
            Fault::Conflict => Self::Conflict(error),
            Fault::Aborted => Self::Aborted(error),
            Fault::NoTable | Fault::Other => Self::Database(error),
        }
    }
}

impl From<SubmissionError> for OutboxError {
    fn from(error: SubmissionError) -> Self {
        match error {
            SubmissionError::Payload(error) => Self::Payload(error),
            SubmissionError::Invalid(error) => Self::Invalid(error),
            SubmissionError::TooLarge { name, size, limit } => Self::TooLarge { name, size, limit },
            SubmissionError::SubjectTooLong { name, size, limit } => {
                Self::SubjectTooLong { name, size, limit }
            }
        }
    }
}
