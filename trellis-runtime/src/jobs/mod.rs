//! Jobs: a log per job on the broker, which is the truth, and everything that reads and extends it.
mod consumer;
mod decide;
mod event;
mod job_ref;
pub(crate) mod log;
pub(crate) mod origin;
mod record;
mod state;
pub(crate) mod submission;
pub(crate) mod upkeep;
pub(crate) mod worker;

use serde_json::value::RawValue;

pub(crate) use consumer::Consumers;
pub use event::{AdminAction, Context, Lineage, LogEntry, Trigger, TriggerKind, WaitEdge};
pub use job_ref::{JobRef, JobRefError, JobSnapshot, Update, Updates};
pub use record::JobRecord;
pub use state::JobState;
pub use submission::SubmissionError;
pub use worker::{JobRetention, WorkerConfig};

/// The last token of the subject that a job begins with.
pub(crate) const CREATED: &str = event::EventType::Created.token();

/// Whether the job whose log is `tree` was created with this JSON payload, in whatever order its
/// fields are written.
pub(crate) fn same_payload(tree: &log::Tree, payload: &[u8]) -> bool {
    let Some(Ok(first)) = tree.0.first().map(|stored| event::Entry::decode(&stored.body)) else {
        return false;
    };
    let stored = first.payload.unwrap_or(RawValue::NULL).get().as_bytes();
    let value = |json| serde_json::from_slice::<serde_json::Value>(json).ok();
    first.event_type.opens() && (stored == payload || value(stored) == value(payload))
}
