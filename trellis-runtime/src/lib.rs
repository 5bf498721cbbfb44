//! The engine behind `trellis` contracts: SQL outbox and inbox, dispatcher, JetStream events.
//!
//! Start at [`Host`]: it runs a service. [`SqlOutbox`] is the outbox by itself, [`Ctx`] what
//! handlers are handed, [`ports`] what can be injected, [`wire`] every name on the wire.
//!
//! # Guarantees, and their limits
//!
//! * An event is sent if, and only if, the transaction that enqueued it commits. It is sent at
//!   least once: a crash between sending and marking sends it again under the same id.
//! * `ctx.once` changes state once per event and group, however often the event is delivered.
//! * Rows that share an ordering key enter the stream in the order of their commits. Rows without a
//!   key, and keys among each other, have no order. Groups keep the stream's order only at
//!   concurrency 1 and as long as no handler fails.
//! * A JetStream server at its default syncs to disk every two minutes: on one server a power cut
//!   can lose acknowledged messages. Three replicas, or `sync_interval: always`, close that.
//! * An event that a group gives up is a dead letter with its reason; a row that cannot be sent is
//!   dead with its reason. Nothing vanishes.

pub mod broker;
mod causes;
mod ctx;
mod database;
mod events;
mod host;
mod jobs;
mod nats;
mod outbox;
pub mod ports;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod trace;
mod validate;
pub mod wire;

pub use ctx::Ctx;
pub use database::Database;
pub use events::{GroupConfig, ProvisionError, StreamConfig};
pub use host::{Health, Host, HostBuilder, StartError, StartErrorKind};
pub use jobs::{
    AdminAction, Context, JobRecord, JobRef, JobRefError, JobRetention, JobSnapshot, JobState, Lineage,
    LogEntry, SubmissionError, Trigger, TriggerKind, Update, Updates, WaitEdge, WorkerConfig,
};
pub use nats::{CreateError, Nats};
pub use outbox::{
    DeadKey, DeadRow, Dispatcher, DispatcherStats, InvalidOutboxConfig, InvalidTableName, Joined,
    MigrationArtifact, OutboxConfig, OutboxError, OutboxErrorKind, OutboxStats, Rejection, SqlOutbox,
    SqlOutboxBuilder, SubmissionOutcome, SubmissionState, Tables, Tx, Wake, migrate, migrate_tables,
    migrations,
};
pub use trace::TraceContext;
pub use validate::Invalid;
