//! The case by name: stopped owner thaws, sends nothing, new owner dies, job still runs.
use std::fmt;
use std::time::Duration;

use orders_demo::Error;
use serde::Serialize;
use testbed::Stopwatch;
use trellis_runtime::JobState;

use super::books::job_id;
use super::stage::{Settings, Stage};
use super::worker::work::{JOB, Task};

const ACK_WAIT: Duration = Duration::from_secs(2);
/// How long anything may take that must happen.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the thawed owner is watched.
const WATCHED: Duration = Duration::from_secs(3);

#[derive(Debug, Default, Serialize)]
pub(super) struct Outcome {
    pub(super) holds: bool,
    /// Words of the job's log.
    log: Vec<String>,
    /// Deliveries without an acknowledgement while the thawed owner was watched: 1 throughout, for
    /// what a late owner says would hit its successor's delivery.
    unacknowledged: Vec<usize>,
    effects: usize,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.holds { "holds" } else { "FAILED" };
        write!(
            f,
            "stopped owner thaws, sends nothing, new owner dies, job still runs: {word} ({})",
            self.log.join(" ")
        )
    }
}

pub(super) async fn run() -> Result<Outcome, Error> {
    let mut stage = Stage::set_up(Settings { ack_wait: ACK_WAIT, concurrency: 1 }).await?;
    let nats = stage.nats();
    stage.start(0)?;
    // Shorter than it is watched after the thaw, so that the late owner has something to send.
    let frozen_for = 2 * ACK_WAIT;
    let pauses_ms = vec![ms(frozen_for), ms(PATIENCE), 0];
    let task = Task { number: 1, errors: 0, fails: false, kills: false, pauses_ms };
    let job = JOB.work.task.create(&nats, task).id(job_id(1)).await?;

    started(&stage, 1).await?;
    stage.worker(0)?.suspend()?;
    stage.start(1)?;
    started(&stage, 2).await?;
    stage.worker(0)?.resume()?;
    let (watched, mut unacknowledged) = (Stopwatch::start(), Vec::new());
    while watched.elapsed() < WATCHED {
        unacknowledged.push(stage.consumer().await?.0);
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    stage.worker(1)?.kill_hard()?;
    let ended = job.wait(PATIENCE).await?;

    let log: Vec<String> = stage.entries().await?.into_iter().map(|entry| entry.token).collect();
    let effects = stage.effects().await?.values().sum();
    let holds = ended.state == JobState::Completed
        && log == ["created", "started", "started", "started", "completed"]
        && unacknowledged.iter().all(|count| *count == 1)
        && effects == 1;
    stage.stop(0)?;
    if !holds {
        eprintln!("logs: {}", stage.keep().display());
    }
    Ok(Outcome { holds, log, unacknowledged, effects })
}

/// Wait until so many tries have begun.
async fn started(stage: &Stage, tries: usize) -> Result<(), Error> {
    let waiting = Stopwatch::start();
    while waiting.elapsed() < PATIENCE {
        let entries = stage.entries().await?;
        if entries.iter().filter(|entry| entry.token == "started").count() >= tries {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(format!("try {tries} did not begin").into())
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
