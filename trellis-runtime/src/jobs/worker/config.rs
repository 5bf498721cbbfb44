//! How a worker works.
use std::time::Duration;

/// How a service works on one kind of job.
///
/// Fields may be added: write `WorkerConfig { .., ..Default::default() }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerConfig {
    /// Jobs at work at once, per process: its slots. Default 16.
    pub concurrency: u16,
    /// How long a delivery may go without a sign of life before another instance gets the job.
    /// Default 30 s; signs of life are automatic while a handler runs. Where instances differ, the
    /// longest counts.
    pub ack_wait: Duration,
    /// How long a handler may take to end after its job was cancelled or its deadline has passed;
    /// then it is dropped where it awaits. Default 10 s.
    pub cancel_grace: Duration,
    /// How often progress and log lines are stored at most. Default 1 s.
    pub observe_every: Duration,
    /// Which ended jobs are kept.
    pub retention: JobRetention,
    /// How often one of the instances looks for jobs without a delivery and for ended jobs that are
    /// no longer kept. Default 5 min.
    pub upkeep_every: Duration,
}

/// Which ended jobs are kept, with their logs.
///
/// Fields may be added: write `JobRetention { .., ..Default::default() }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRetention {
    /// None goes earlier than this after its end, whatever the count. Default 24 h. It is what makes a
    /// repeated submission harmless, so it is not shorter than the outbox's `job_horizon`.
    pub at_least: Duration,
    /// All are gone this long after their end. Default 24 h.
    pub at_most: Duration,
    /// So many are kept beyond `at_least`; the oldest go first. Default 100,000.
    pub count: usize,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            concurrency: 16,
            ack_wait: Duration::from_secs(30),
            cancel_grace: Duration::from_secs(10),
            observe_every: Duration::from_secs(1),
            retention: JobRetention::default(),
            upkeep_every: Duration::from_secs(300),
        }
    }
}

impl Default for JobRetention {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 3600);
        Self { at_least: day, at_most: day, count: 100_000 }
    }
}

impl WorkerConfig {
    /// What is wrong with it, if anything is.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        if self.concurrency == 0 {
            Some("`concurrency` must be at least 1")
        } else if self.ack_wait < Duration::from_secs(1) {
            Some("`ack_wait` must be at least 1 s")
        } else if self.retention.at_most < self.retention.at_least {
            Some("`retention.at_most` must not be shorter than `retention.at_least`")
        } else if self.upkeep_every < Duration::from_millis(100) {
            Some("`upkeep_every` must be at least 100 ms")
        } else {
            None
        }
    }
}
