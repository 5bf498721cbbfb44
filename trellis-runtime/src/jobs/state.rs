//! The states of a job.
use serde::{Deserialize, Serialize};

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum JobState {
    /// Waits for a worker.
    Pending,
    /// A try is under way, or its worker has gone.
    Active,
    /// A try failed; the next one waits for its time.
    Retry,
    /// Ended with a result.
    Completed,
    /// Ended without: no later try could have succeeded.
    Failed,
    /// Ended by a cancellation.
    Cancelled,
    /// Ended by its deadline.
    Expired,
    /// Never started: another job took its place.
    Skipped,
    /// Lost its key to another job.
    Stale,
    /// Given up: its tries are used up, or it cannot be read.
    Dead,
    /// Dead, and an operator has seen it.
    Dismissed,
}

impl JobState {
    pub(crate) const ALL: [Self; 11] = [
        Self::Pending,
        Self::Active,
        Self::Retry,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
        Self::Skipped,
        Self::Stale,
        Self::Dead,
        Self::Dismissed,
    ];

    /// Whether there is something left to do.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Active | Self::Retry)
    }

    /// Whether it has ended.
    pub fn is_terminal(self) -> bool {
        !self.is_open()
    }

    /// Whether a redrive starts it again.
    pub fn can_be_redriven(self) -> bool {
        matches!(self, Self::Failed | Self::Dead)
    }
}

impl std::fmt::Display for JobState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Retry => "retry",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Skipped => "skipped",
            Self::Stale => "stale",
            Self::Dead => "dead",
            Self::Dismissed => "dismissed",
        })
    }
}
