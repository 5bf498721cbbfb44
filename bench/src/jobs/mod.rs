//! `bench jobs`: jobs enqueued, worked off from a backlog, and picked up by workers that wait.

mod contest;
mod ours;
mod peers;
mod raw;

use std::time::Duration;

use crate::Result;
use crate::case::Case;
use crate::jobs::contest::Contest;
use crate::jobs::ours::Ours;
use crate::jobs::peers::Peers;
use crate::jobs::raw::Raw;
use crate::latencies::Latencies;
use crate::setting::Setting;

/// What ours and the raw loop are asked to do alike.
pub(crate) trait Queue {
    /// Enqueue jobs that do nothing, as fast as that goes, into a queue where nothing was yet; then
    /// work them off, `in_flight` at once. An error unless each one was done once.
    async fn backlog(&self, jobs: u32, in_flight: usize) -> Result<Backlog>;
    /// Enqueue one job at a time for workers that wait, after [`pause`]: from the call that enqueues
    /// until the handler is entered.
    async fn pick_up(&self, samples: u32) -> Result<Latencies>;
}

/// How long a backlog took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backlog {
    /// From the first call until the last job is acknowledged to be stored.
    pub(crate) enqueued: Duration,
    /// From the start of the workers until the end of the last job is stored.
    pub(crate) done: Duration,
}

/// How much is measured in a round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Jobs of a backlog that is worked off one at a time.
    one_by_one: u32,
    /// Jobs of a backlog that is worked off 16 or 256 at a time.
    together: u32,
    /// Jobs of a backlog for the peers.
    peers: u32,
    /// Jobs that find their workers waiting.
    samples: u32,
    /// Jobs that wait for a retry much later, beside a fresh one.
    delayed: u32,
}

/// The cases, and what is to be known of the peers in them.
pub(crate) struct Outcome {
    pub(crate) cases: Vec<Case>,
    pub(crate) peers: Vec<(&'static str, String)>,
}

/// All contestants, round by round, so that whatever the machine does meanwhile hits all alike.
pub(crate) async fn run(setting: &Setting) -> Result<Outcome> {
    let sizes = if setting.quick {
        Sizes { one_by_one: 300, together: 4_000, peers: 4_000, samples: 100, delayed: 5_000 }
    } else {
        Sizes { one_by_one: 3_000, together: 30_000, peers: 20_000, samples: 300, delayed: 100_000 }
    };
    let ours = Ours::new(setting).await?;
    let mut contest = Contest::new(ours, Raw::new(setting).await?, Peers::build().await?);
    for round in 0..setting.rounds() {
        contest.round(setting, round, sizes).await?;
    }
    contest.beside_delayed(sizes).await?;
    Ok(contest.outcome())
}

/// Pause before a job that shall find its workers waiting; it meets no clock of theirs in step.
pub(crate) async fn pause() {
    tokio::time::sleep(Duration::from_millis(rand::random_range(5..15))).await;
}
