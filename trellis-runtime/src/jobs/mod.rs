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

pub(crate) use consumer::Consumers;
pub use event::{AdminAction, Context, Lineage, LogEntry, Trigger, TriggerKind, WaitEdge};
pub use job_ref::{JobRef, JobRefError, JobSnapshot, Update, Updates};
pub use record::JobRecord;
pub use state::JobState;
pub use submission::SubmissionError;
pub use worker::{JobRetention, WorkerConfig};

/// The last token of the subject that a job begins with.
pub(crate) const CREATED: &str = event::EventType::Created.token();

/// Whether the job whose log is `tree` was created with this JSON payload.
pub(crate) fn same_payload(tree: &log::Tree, payload: &[u8]) -> bool {
    let first = tree.0.first().and_then(|stored| event::Entry::decode(&stored.body).ok());
    first.and_then(|entry| entry.payload).is_some_and(|stored| stored.get().as_bytes() == payload)
}
